package main

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"

	"github.com/edgelimit/edgelimit/docs/examples/monolith/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs the whole application with variables on a port of its own and gives its base URL.
func start(t *testing.T, environ ...string) string {
	t.Helper()
	k, err := load(append(environ, "SHOP_HTTP__ADDRESS=127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	var server *web.Server
	app := fxtest.New(t, application(k), fx.Populate(&server), fx.Replace(slog.New(slog.DiscardHandler)))
	app.RequireStart()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		app.RequireStop()
	})
	return "http://" + server.Address()
}

// answer gives status and Retry-After of a request.
func answer(t *testing.T, method, url string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Header.Get("Retry-After")
}

func TestEnabled(t *testing.T) {
	base := start(t)
	for i := range 3 {
		if status, _ := answer(t, "POST", base+"/orders"); status != http.StatusCreated {
			t.Errorf("order %d: %d", i, status)
		}
	}
	if status, wait := answer(t, "POST", base+"/orders"); status != http.StatusTooManyRequests || wait != "2" && wait != "1" {
		t.Errorf("order 3: %d, Retry-After %q", status, wait)
	}
	if status, _ := answer(t, "GET", base+"/catalog"); status != http.StatusOK {
		t.Errorf("catalog: %d", status)
	}
}

func TestDisabled(t *testing.T) {
	base := start(t, "SHOP_APP__RATE_LIMIT__ENABLED=false")
	for i := range 20 {
		if status, _ := answer(t, "POST", base+"/orders"); status != http.StatusCreated {
			t.Errorf("order %d: %d", i, status)
		}
	}
}

// TestWithoutItsRedis shows that the application starts and stays closed where it must.
func TestWithoutItsRedis(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	base := start(t, "SHOP_APP__RATE_LIMIT__PROVIDER=redis", "SHOP_APP__RATE_LIMIT__REDIS__ADDRESS="+address,
		"SHOP_APP__RATE_LIMIT__KEY__HMAC_SECRET=0123456789abcdef0123456789abcdef")
	if status, wait := answer(t, "POST", base+"/orders"); status != http.StatusServiceUnavailable || wait != "1" {
		t.Errorf("order: %d, Retry-After %q", status, wait)
	}
	if status, _ := answer(t, "GET", base+"/catalog"); status != http.StatusOK {
		t.Errorf("catalog: %d", status)
	}
}

func TestFaultyConfigurationNamesItsPath(t *testing.T) {
	k, err := load([]string{"SHOP_APP__RATE_LIMIT__PROVIDR=memory"})
	if err != nil {
		t.Fatal(err)
	}
	err = fx.New(application(k)).Err()
	if err == nil || !strings.Contains(err.Error(), "app.rate-limit.providr: is no known key; the nearest is app.rate-limit.provider") {
		t.Errorf("got %v", err)
	}
}

// TestReadmeShowsTheConfiguration holds the YAML of README.md to the file that is run.
func TestReadmeShowsTheConfiguration(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```yaml\n")
	shown, _, _ := strings.Cut(rest, "```")
	if diff := cmp.Diff(string(defaults), shown); diff != "" {
		t.Errorf("(-config.yaml +README.md):\n%s", diff)
	}
}
