package lanes

import (
	"net"
	"strings"
	"testing"
)

func TestSharedServersAnswerAndSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	for _, server := range All(t) {
		t.Run(server.Lane, func(t *testing.T) {
			t.Parallel()
			t.Log(server)
			if err := answers(server.Addr, nil); err != nil {
				t.Fatal(err)
			}
			if server.Product == "" || server.Version == "" || server.Detail == "" {
				t.Errorf("incomplete: %+v", server)
			}
			if host, _, err := net.SplitHostPort(server.Addr); err != nil {
				t.Error(err)
			} else if server.Lane == "process" && host != "127.0.0.1" {
				t.Errorf("listens on %s", host)
			}
		})
	}
}

func TestDefaultIsOneServerForTheWholeProcess(t *testing.T) {
	t.Parallel()
	if first, second := Default(t), Default(t); first != second {
		t.Errorf("two servers: %v and %v", first, second)
	}
}

func TestDebian70IsRedis70(t *testing.T) {
	t.Parallel()
	server := Debian70(t)
	if server.Product != "redis" || !strings.HasPrefix(server.Version, "7.0.") {
		t.Errorf("%v", server)
	}
}

func TestAnImageNamed74MustBe74(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		image, version string
		honest         bool
	}{
		{"redis:7.4-alpine", "7.4.1", true},
		{"redis:7.4-alpine", "7.2.4", false},
		{"registry:5000/team/redis:7.4.2", "8.0.2", false},
		{"edgelimit-test/redis:8.0-debian-trixie", "8.0.2", true},
		{"host-7.4:5000/redis", "8.0.2", true},
		{"redis", "8.4.0", true},
	} {
		if err := honestTag(test.image, test.version); (err == nil) != test.honest {
			t.Errorf("%s reporting %s: %v", test.image, test.version, err)
		}
	}
}
