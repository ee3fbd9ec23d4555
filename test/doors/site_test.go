//go:build doors

package doors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// The addresses that the files of docs/examples are written with.
const (
	writtenLimiter     = "127.0.0.1:8080"
	writtenApplication = "127.0.0.1:9000"
	writtenProxy       = "127.0.0.1:8088"
)

// century is a window that does not end while a test runs.
const century = "876000h"

// proxy is a program that asks edgelimit.
type proxy struct {
	name, debianPackage, file string
	// command starts it with a copy of its file, in a directory of its own.
	command func(binary, dir, file string) *exec.Cmd
	// unreachable is what a client sees where no edgelimit answers.
	unreachable int
	// incompatible is what a client sees where the state in Redis does not fit.
	incompatible int
}

var proxies = []proxy{
	{
		name: "nginx", debianPackage: "nginx-light", file: "nginx.conf",
		command: func(binary, dir, file string) *exec.Cmd {
			// One process: nothing outlives it.
			return exec.Command(binary, "-p", dir, "-c", file, "-g", "daemon off; master_process off;")
		},
		unreachable: http.StatusServiceUnavailable, incompatible: http.StatusServiceUnavailable,
	},
	{
		name: "caddy", debianPackage: "caddy", file: "Caddyfile",
		command: func(binary, dir, file string) *exec.Cmd {
			cmd := exec.Command(binary, "run", "--config", file, "--adapter", "caddyfile")
			cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
			return cmd
		},
		unreachable: http.StatusBadGateway, incompatible: http.StatusInternalServerError,
	},
}

// site is an application behind a proxy behind edgelimit.
type site struct {
	t       *testing.T
	url     string
	limiter *program
	mu      sync.Mutex
	seen    []*http.Request // what the application got
}

// open starts a site. Variables configure edgelimit beside the example's own file.
func open(t *testing.T, p proxy, variables ...string) *site {
	t.Helper()
	binary := installed(t, p.name, p.debianPackage)
	s := &site{t: t}
	application := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Clone(context.Background())) //nolint:usetesting // only its headers are read
		s.mu.Unlock()
		switch r.URL.Path {
		case "/forbidden":
			http.Error(w, "not yours", http.StatusForbidden)
		case "/echo":
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			_, _ = w.Write(body)
		case "/broken":
			http.Error(w, "my own fault", http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, "welcome")
		}
	}))
	t.Cleanup(application.Close)
	limiter, own := freePort(t), freePort(t)
	dir := t.TempDir()
	config := example(t, dir, filepath.Join(p.name, "edgelimit.yaml"), map[string]string{writtenLimiter: limiter})
	serve := exec.Command(edgelimit(t), "serve", "--config", config)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "EDGELIMIT_APP__") {
			serve.Env = append(serve.Env, variable)
		}
	}
	serve.Env = append(serve.Env, variables...)
	s.limiter = start(t, "edgelimit", serve)
	eventually(t, "edgelimit is ready", func() error {
		s.limiter.running()
		return answers("http://"+limiter+"/readyz", http.StatusOK)
	})
	front := start(t, p.name, p.command(binary, dir, example(t, dir, filepath.Join(p.name, p.file), map[string]string{
		writtenLimiter: limiter, writtenApplication: strings.TrimPrefix(application.URL, "http://"), writtenProxy: own,
	})))
	s.url = "http://" + own
	eventually(t, p.name+" listens", func() error {
		front.running()
		connection, err := net.Dial("tcp", own)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
	return s
}

func answers(url string, want int) error {
	response, err := http.Get(url) //nolint:gosec // loopback
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != want {
		body, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return nil
}

// answer is what a client gets.
type answer struct {
	status int
	header http.Header
	body   string
}

// get asks the site as a client with an address of its own on loopback.
func (s *site) get(from, path string, headers ...string) answer {
	s.t.Helper()
	a, err := s.try(from, path, headers...)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *site) try(from, path string, headers ...string) (answer, error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	request, err := http.NewRequest(http.MethodGet, s.url+path, http.NoBody) //nolint:noctx // the client has a timeout
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	response, err := (&http.Client{Transport: transport, Timeout: patience}).Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{status: response.StatusCode, header: response.Header, body: string(body)}, nil
}

// reached counts the requests that the application got, and forgets them.
func (s *site) reached() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// overRedis are the variables that put edgelimit on a Redis.
func overRedis(address string) []string {
	return []string{
		"EDGELIMIT_APP__RATE_LIMIT__PROVIDER=redis",
		"EDGELIMIT_APP__RATE_LIMIT__REDIS__ADDRESS=" + address,
		"EDGELIMIT_APP__RATE_LIMIT__REDIS__COMMAND_TIMEOUT=5s",
		"EDGELIMIT_APP__SERVICE__DEFAULT_DEADLINE=9s",
		"EDGELIMIT_APP__RATE_LIMIT__KEY__HMAC_SECRET=an-hmac-secret-of-the-tests-of-doors",
		"EDGELIMIT_APP__RATE_LIMIT__KEY__NAMESPACE=doors",
	}
}

// variables are those of a store, and the window that does not end.
func variables(more ...string) []string {
	return append(more, "EDGELIMIT_APP__RATE_LIMIT__POLICIES__LOGIN__WINDOW="+century)
}

// everyProxy runs a test with each proxy, over memory and over a Redis of its own.
func everyProxy(t *testing.T, test func(t *testing.T, p proxy, variables []string)) {
	t.Helper()
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			t.Run("memory", func(t *testing.T) {
				t.Parallel()
				test(t, p, variables())
			})
			t.Run("redis", func(t *testing.T) {
				t.Parallel()
				redis := lanes.StartProcess(t, lanes.Options{})
				test(t, p, variables(overRedis(redis.Addr)...))
			})
		})
	}
}

var errClosed = errors.New("the door is closed")
