package cacheredis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// version is major and minor.
type version struct{ major, minor int }

func parseVersion(text string) (version, error) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) < 2 {
		return version{}, fmt.Errorf("version %q is not major.minor", text)
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return version{}, fmt.Errorf("version %q is not major.minor", text)
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return version{}, fmt.Errorf("version %q is not major.minor", text)
	}
	return version{major, minor}, nil
}

func (v version) before(o version) bool {
	return v.major < o.major || v.major == o.major && v.minor < o.minor
}

// LowestValkey is the lowest Valkey version accepted. Valkey's redis_version is frozen at the
// version that it forked from, so it is judged by its own.
const LowestValkey = "8.0"

// serverIdentity reads product and version from INFO server.
func serverIdentity(info string) (product, text string) {
	product = "redis"
	for line := range strings.SplitSeq(info, "\n") {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "redis_version":
			if product == "redis" {
				text = value
			}
		case "valkey_version":
			product, text = "valkey", value
		}
	}
	return product, text
}

// greeter checks every new connection: that the server is new enough and that the user is the one
// configured. A failover may put another server behind the address at any time.
type greeter struct {
	username string
	lowest   version
	valkey   version
	seen     func(product, version string)
}

func (g *greeter) onConnect(ctx context.Context, c *redis.Conn) error {
	var info, user *redis.Cmd
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		info = p.Do(ctx, "INFO", "server")
		user = p.Do(ctx, "ACL", "WHOAMI")
		return nil
	})
	if err != nil {
		var re redis.Error
		if !errors.As(err, &re) {
			return err
		}
		word := firstWord([]byte(re.Error()))
		code, ok := refusals[word]
		if !ok {
			code = store.CodeHandshake
		}
		return &greetingError{code: code, cause: fmt.Errorf("INFO server and ACL WHOAMI: server replied %s", word)}
	}
	text, err := info.Text()
	if err != nil {
		return &greetingError{code: store.CodeHandshake, cause: errors.New("INFO server gave no text")}
	}
	product, versionText := serverIdentity(text)
	found, err := parseVersion(versionText)
	if err != nil {
		return &greetingError{code: store.CodeServerVersion, cause: err}
	}
	lowest := g.lowest
	if product == "valkey" {
		lowest = g.valkey
	}
	if found.before(lowest) {
		return &greetingError{code: store.CodeServerVersion, cause: fmt.Errorf(
			"server is %s %s, the programs need %d.%d or newer", product, versionText, lowest.major, lowest.minor)}
	}
	want := g.username
	if want == "" {
		want = "default"
	}
	if name, err := user.Text(); err != nil || name != want {
		return &greetingError{code: store.CodeAuthentication, cause: errors.New("connected as another user than the one configured")}
	}
	g.seen(product, versionText)
	return nil
}
