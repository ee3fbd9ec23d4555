package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/knadh/koanf/v2"
)

// FromKoanf reads app.rate-limit and app.service from the koanf of a host application. It is strict
// below these two; everything else in k is the host's and is not looked at. Neither has to be there:
// without app.rate-limit the limiter is disabled, without app.service its defaults hold.
//
// k may hold numbers and truth values as texts, as environment variables give them.
func FromKoanf(k *koanf.Koanf) (Config, error) {
	return fromKoanf(k, true)
}

// RateLimitFromKoanf is FromKoanf for app.rate-limit alone: what a host has at app.service is its
// own matter.
func RateLimitFromKoanf(k *koanf.Koanf) (RateLimit, error) {
	c, err := fromKoanf(k, false)
	return c.RateLimit, err
}

func fromKoanf(k *koanf.Koanf, withService bool) (Config, error) {
	d := newDecoder(textual)
	if k == nil {
		d.add("app", "there is no koanf to read")
		return Config{}, d.err()
	}
	tree := k.Raw()
	d.flat(tree, "", rateLimitPath)
	app, _ := tree["app"].(map[string]any)
	d.flat(app, "app", leaf(rateLimitPath))
	limiter := d.rateLimit(d.section(rateLimitPath, app))
	c := Config{RateLimit: limiter}
	if withService {
		// The defaults of a program that is not run are not held against the limiter.
		if there := d.section(servicePath, app); there {
			c.Service = d.service(limiter)
		} else {
			c.Service = d.service(RateLimit{})
		}
	}
	if err := d.err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// flat finds keys such as "app.rate-limit.enabled" that were loaded without a delimiter: they are
// no section, and a limiter that somebody turned on would silently be off.
func (d *decoder) flat(tree map[string]any, parent, name string) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		if strings.HasPrefix(key, name+".") || parent == "" && key == name {
			d.add(join(parent, key), "is one flat key, want nested sections: give koanf's provider its delimiter")
		}
	}
}
