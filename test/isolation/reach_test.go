package isolation

import (
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/fx"

	"github.com/edgelimit/edgelimit/app-bootstrap/caching"
	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

const module = "github.com/edgelimit/edgelimit/"

// reach walks everything that a value leads to, unexported fields too, and gives the named types met
// and the programs among the values.
type reach struct {
	seen     map[visit]bool
	types    map[string]bool
	programs map[string]bool
}

type visit struct {
	at   uintptr
	kind reflect.Type
}

func reachOf(v any) *reach {
	r := &reach{seen: map[visit]bool{}, types: map[string]bool{}, programs: map[string]bool{}}
	r.walk(reflect.ValueOf(v))
	return r
}

var programType = reflect.TypeFor[store.Program]()

func (r *reach) walk(v reflect.Value) {
	if !v.IsValid() {
		return
	}
	t := v.Type()
	if t.PkgPath() != "" {
		r.types[t.PkgPath()+"."+t.Name()] = true
	}
	if t == programType {
		r.programs[v.FieldByName("Name").String()] = true
	}
	switch v.Kind() { //nolint:exhaustive // Numbers, texts, functions and channels lead nowhere.
	case reflect.Pointer:
		if v.IsNil() || r.seen[visit{v.Pointer(), t}] {
			return
		}
		r.seen[visit{v.Pointer(), t}] = true
		r.walk(v.Elem())
	case reflect.Interface:
		if !v.IsNil() {
			r.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			r.walk(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			r.walk(v.Index(i))
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			r.walk(key)
			r.walk(value)
		}
	}
}

// ofACache tells the types of a cache from the limiter's.
func ofACache(name string) bool {
	return strings.HasPrefix(name, module+"shared-contract/cache") || strings.HasPrefix(name, module+"app-bootstrap/caching") ||
		name == module+"adapter/outbound/cacheredis.Cache" || name == module+"adapter/outbound/memory.Cache" ||
		name == module+"app-bootstrap/config.CacheRedis"
}

// TestLimiterDoesNotReachTheCache: from a limiter that was composed beside a cache nothing of a cache can
// be reached, and of the programs only its own. From the cache, in turn, nothing of the limiter.
func TestLimiterDoesNotReachTheCache(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "")
	k := hostWith(t, g.address, g.address)
	var port ratelimit.EdgeRateLimitPort
	var entries cache.CachePort
	app := fx.New(fx.NopLogger, composition.FromHost(k), caching.FromHost(k), fx.Populate(&port, &entries))
	if app.Err() != nil {
		t.Fatal(app.Err())
	}
	limiter, cached := reachOf(port), reachOf(entries)
	for name := range limiter.types {
		if ofACache(name) {
			t.Errorf("the limiter reaches %s", name)
		}
	}
	for name := range limiter.programs {
		if !strings.HasPrefix(name, "rate-") {
			t.Errorf("the limiter reaches the program %s", name)
		}
	}
	for name := range cached.programs {
		if !strings.HasPrefix(name, "cache-") {
			t.Errorf("the cache reaches the program %s", name)
		}
	}
	// The walk sees what is there: the decorator of the one, the store of both.
	for _, want := range []struct {
		r    *reach
		name string
	}{
		{limiter, "adapter/outbound/cacheredis.Store"},
		{limiter, "adapter/outbound/cacheredis.EdgeRateLimiter"},
		{cached, "adapter/outbound/cacheredis.Store"},
		{cached, "adapter/outbound/cacheredis.Cache"},
		{cached, "shared-contract/cache/failopen.Cache"},
	} {
		if !want.r.types[module+want.name] {
			t.Errorf("the walk does not meet %s", want.name)
		}
	}
	if cached.types[module+"adapter/outbound/cacheredis.EdgeRateLimiter"] || cached.types[module+"app-bootstrap/composition.Limiter"] {
		t.Error("the cache reaches the limiter")
	}
	if len(limiter.programs) == 0 || len(cached.programs) != len(store.CachePrograms()) {
		t.Errorf("programs %v and %v", limiter.programs, cached.programs)
	}
}

// TestLimiterDoesNotLinkTheDecorator: what the limiter is composed of does not import the fail-open
// decorator or the composition of the cache, not even through others, nor does the service.
func TestLimiterDoesNotLinkTheDecorator(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", module+"app-bootstrap/composition", module+"app-bootstrap/service", module+"cmd/edgelimit").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		switch strings.TrimSpace(line) {
		case module + "shared-contract/cache/failopen", module + "app-bootstrap/caching":
			t.Errorf("the limiter links %s", line)
		}
	}
	if !strings.Contains(string(out), module+"adapter/outbound/cacheredis\n") {
		t.Errorf("the list lacks the limiter's own provider:\n%s", out)
	}
}
