package connect

import (
	"crypto/tls"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/adapter/outbound/cacheredis"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// TestStoreConfig: every setting arrives, and what is not a setting stays as it is without one.
func TestStoreConfig(t *testing.T) {
	t.Parallel()
	secure, log, programs := &tls.Config{MinVersion: tls.VersionTLS13}, slog.New(slog.DiscardHandler), store.RatePrograms()
	got := StoreConfig(config.Redis{
		Address: "redis:6379", Username: "u", Password: config.NewSecret([]byte("p")), Database: 3, TLS: secure,
		CommandTimeout: time.Second, PoolSize: 4, Coalesce: true,
	}, config.Key{Namespace: "n"}, programs, log)
	want := cacheredis.StoreConfig{
		Address: "redis:6379", Username: "u", Password: "p", Database: 3, TLS: secure,
		CommandTimeout: time.Second, PoolSize: 4, Coalesce: true, Namespace: "n", Programs: programs, Logger: log,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// A field that the adapter gains is one to map, or to name here.
	notSettings := []string{"CallerClock", "Prefix", "LowestVersion"}
	for v, i := reflect.ValueOf(got), 0; i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() != slices.Contains(notSettings, name) {
			t.Errorf("%s is %v", name, v.Field(i))
		}
	}
}
