package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
)

// EnvironmentPrefix begins every environment variable that Load reads. After it, __ separates
// levels and _ stands for -, so that EDGELIMIT_APP__RATE_LIMIT__REDIS__POOL_SIZE is
// app.rate-limit.redis.pool-size. Policies whose ID has capitals, dots or underscores cannot be
// named this way.
const EnvironmentPrefix = "EDGELIMIT_APP__"

// separator joins the levels of a path inside koanf. It is in no key, while dots are in policy IDs.
const separator = "\x1f"

const maxFileBytes = 4 << 20

// Source is where the standalone program's configuration comes from. Later ones win: the file, then
// the environment, then the flags.
type Source struct {
	// File is a YAML file; "" is none.
	File string
	// Environ is what os.Environ gives; nil is none.
	Environ []string
	// Flags are values by the path of their key, such as "app.rate-limit.provider".
	Flags map[string]any
}

// Load reads the configuration of the standalone program. Here, everything unknown is an error, on
// every level.
func Load(source Source) (Config, error) {
	d := newDecoder(strict)
	var content []byte
	if source.File != "" {
		var err error
		if content, err = d.read(source.File, maxFileBytes); err != nil {
			d.add(source.File, "cannot be read: %s", cause(err))
		}
	}
	return d.load(source, content)
}

func (d *decoder) load(source Source, content []byte) (Config, error) {
	k := koanf.New(separator)
	d.file(k, source.File, content)
	d.environment(k, source.Environ)
	d.flags(k, source.Flags)
	if err := d.err(); err != nil {
		return Config{}, err
	}
	tree := k.Raw()
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		if key != "app" {
			d.add(showKey(key), "is no known section; the only one is app")
		}
	}
	app, ok := tree["app"].(map[string]any)
	if !ok && tree["app"] != nil {
		d.add("app", "is %s, want a section", describeType(tree["app"]))
	}
	for _, key := range slices.Sorted(maps.Keys(app)) {
		if schema.children["app"].children[key] == nil {
			d.add(join("app", showKey(key)), "is no known section; the nearest is %s", nearest("app", key, ""))
		}
	}
	limiter := d.rateLimit(d.section(rateLimitPath, app))
	breakers := d.circuitBreaker(d.section(breakerPath, app))
	d.section(cachePath, app)
	caches, _ := app[leaf(cachePath)].(map[string]any)
	_, there := caches[leaf(cacheRedisPath)]
	d.section(servicePath, app)
	envoy := d.envoyRLS(d.section(envoyPath, app), limiter)
	c := Config{RateLimit: limiter, CircuitBreaker: breakers, Cache: d.cacheRedis(there), Service: d.service(limiter), EnvoyRLS: envoy}
	if err := d.err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

var (
	yamlLine  = regexp.MustCompile(`^line (\d+): (.*)$`)
	backticks = regexp.MustCompile("(?s)`.*`")
	anchor    = regexp.MustCompile(`(?s)unknown anchor '.*' referenced`)
	document  = regexp.MustCompile(`(?m)^(---|\.\.\.)([ \t].*)?$`)
)

// file parses YAML. Duplicate keys are refused by the parser, a second document here, since it would
// be ignored in silence.
func (d *decoder) file(k *koanf.Koanf, name string, content []byte) {
	for _, at := range document.FindAllIndex(content, -1) {
		if hasContent(string(content[:at[0]])) && hasContent(string(content[at[1]:])) {
			d.add(fmt.Sprintf("%s:%d", name, 1+strings.Count(string(content[:at[0]]), "\n")), "begins a second YAML document, want one")
			return
		}
	}
	err := k.Load(rawbytes.Provider(content), yaml.Parser())
	if err == nil {
		return
	}
	for _, message := range strings.Split(err.Error(), "\n") {
		message = strings.TrimPrefix(strings.TrimSpace(message), "yaml: ")
		if message == "unmarshal errors:" || message == "" {
			continue
		}
		// What stands in the file can be a secret.
		if strings.Contains(message, " into map[string]") {
			d.add(name, "is not a mapping of sections")
			continue
		}
		message = backticks.ReplaceAllString(message, "a value")
		message = anchor.ReplaceAllString(message, "unknown anchor referenced (a text that begins with * needs quotes)")
		if m := yamlLine.FindStringSubmatch(message); m != nil {
			d.add(name+":"+m[1], "is not valid YAML: %s", m[2])
		} else {
			d.add(name, "is not valid YAML: %s", message)
		}
	}
}

// hasContent reports whether a piece of YAML has a line that is not blank, a comment or a directive.
func hasContent(piece string) bool {
	for line := range strings.Lines(piece) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "%") && line != "---" && line != "..." {
			return true
		}
	}
	return false
}

func (d *decoder) environment(k *koanf.Koanf, environ []string) {
	prefix := strings.TrimSuffix(EnvironmentPrefix, "APP__")
	provider := env.Provider(separator, env.Opt{
		Prefix:      EnvironmentPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, prefix)), "__", separator)
			segments := strings.Split(strings.ReplaceAll(key, "_", "-"), separator)
			typed, ok := d.outside(segments, find(segments), value, "the environment variable "+quoteless(name))
			if !ok {
				return "", nil
			}
			return strings.Join(segments, separator), typed
		},
	})
	if err := k.Load(provider, nil); err != nil {
		d.add("environment", "cannot be read: %v", err)
	}
}

func (d *decoder) flags(k *koanf.Koanf, flags map[string]any) {
	flat := make(map[string]any, len(flags))
	for _, path := range slices.Sorted(maps.Keys(flags)) {
		segments, f := locate(path)
		if typed, ok := d.outside(segments, f, flags[path], "a flag"); ok {
			flat[strings.Join(segments, separator)] = typed
		}
	}
	if err := k.Load(confmap.Provider(flat, separator), nil); err != nil {
		d.add("flags", "cannot be read: %v", err)
	}
}

// outside gives the typed value of a key that was given outside the file. f is nil where the
// segments name no key.
func (d *decoder) outside(segments []string, f *field, value any, origin string) (any, bool) {
	path := ""
	for _, segment := range segments {
		path = join(path, showKey(segment))
	}
	d.origins[path] = origin
	if f == nil {
		section, last := strings.Join(segments[:len(segments)-1], "."), segments[len(segments)-1]
		policy := ""
		if tree, inside, ok := inPolicy(section); ok && len(segments) > strings.Count(tree, ".")+2 {
			section, policy = join(tree, anyPolicy), showKey(inside)
		}
		d.add(path, "is no known key; the nearest is %s", nearest(section, last, policy))
		return nil, false
	}
	typed, problem := f.parse(value, textual)
	if problem != "" {
		d.add(path, "%s", problem)
		return nil, false
	}
	return typed, true
}

func quoteless(name string) string { return strings.Trim(quote(name), `"`) }
