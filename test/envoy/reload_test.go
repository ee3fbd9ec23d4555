package envoy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// generation are rules of which both limits and both names tell which they are.
func generation(n int) string {
	return fmt.Sprintf(`domain: d
descriptors:
- {key: a, rate_limit: {unit: year, requests_per_unit: %[1]d, name: g%[2]d}}
- {key: b, rate_limit: {unit: year, requests_per_unit: %[1]d, name: g%[2]d}}
`, 1_000_000+n, n)
}

// replaceFile does as deployments do.
func replaceFile(t testing.TB, path, content string) {
	t.Helper()
	next := filepath.Join(filepath.Dir(path), ".next")
	if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// TestReloadsUnderLoad replaces the file of rules, with bad ones in between, for as long as clients ask
// over the network: no call fails, and no answer is of two generations.
func TestReloadsUnderLoad(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"memory": "", "redis": lanes.Default(t).Addr} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const callers, generations = 8, 15
			cfg := settings(t, generation(0))
			door, client := open(t, cfg, composed(t, address), nil)
			file := filepath.Join(cfg.RulesDir, "rules.yaml")
			var done atomic.Bool
			var answered atomic.Int64
			var wait sync.WaitGroup
			newest := make([]atomic.Int64, callers)
			for caller := range callers {
				wait.Go(func() {
					r := (step{Ask: []string{"a=shared", "b=shared", fmt.Sprintf("a=%d", caller), fmt.Sprintf("b=%d", caller)}}).request(t, "d")
					for !done.Load() {
						response, err := call(t.Context(), client, r)
						if err != nil {
							t.Errorf("caller %d: %v", caller, err)
							return
						}
						answered.Add(1)
						n := int64(response.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit()) - 1_000_000
						if n < newest[caller].Load() {
							t.Errorf("caller %d is answered by generation %d after %d", caller, n, newest[caller].Load())
						}
						newest[caller].Store(n)
						for _, s := range response.GetStatuses() {
							limit := s.GetCurrentLimit()
							if limit.GetName() != fmt.Sprintf("g%d", n) || int64(limit.GetRequestsPerUnit()) != 1_000_000+n || s.GetLimitRemaining() >= limit.GetRequestsPerUnit() {
								t.Errorf("an answer of two generations: %v", response)
								return
							}
						}
					}
				})
			}
			for n := 1; n < generations && !t.Failed(); n++ {
				if n%3 == 0 {
					replaceFile(t, file, "domain: d\ndescriptors: [{key: a, unit: second}]\n")
					eventually(t, "a problem", func() error {
						if door.Problem() == nil {
							return errors.New("there is none")
						}
						return nil
					})
				}
				replaceFile(t, file, generation(n))
				eventually(t, fmt.Sprintf("generation %d", n), func() error {
					for i := range newest {
						if newest[i].Load() != int64(n) && !t.Failed() {
							return fmt.Errorf("caller %d is at %d", i, newest[i].Load())
						}
					}
					return door.Problem()
				})
			}
			done.Store(true)
			wait.Wait()
			t.Logf("%d answers over %d generations", answered.Load(), generations)
		})
	}
}

// TestEveryFeatureAndEveryFault loads a directory in which rules say everything that they can, and then
// each bad one beside it: its fault has file and path, and the rules that are in use stay.
func TestEveryFeatureAndEveryFault(t *testing.T) {
	t.Parallel()
	const testdata = "../../adapter/inbound/envoyrls/rules/testdata"
	read := func(path string) string {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	cfg := settings(t, read(filepath.Join(testdata, "ok_every_feature.yaml")))
	log := &logBuffer{}
	door, client := open(t, cfg, composed(t, ""), log)
	ask := func() {
		t.Helper()
		response, err := call(t.Context(), client, (step{Ask: []string{"plan=gold,user=batch", "path=/api/x", "internal=x", "model=m", "remote_address=192.0.2.1"}}).request(t, "every-feature"))
		if err != nil || len(response.GetStatuses()) != 5 || response.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit() != 5000 ||
			response.GetStatuses()[1].GetCurrentLimit().GetRequestsPerUnit() != 4294967295 {
			t.Fatalf("%v, %v", response, err)
		}
	}
	ask()
	if door.Problem() != nil || !strings.Contains(log.String(), "rules=11") || !strings.Contains(log.String(), "has no effect") {
		t.Errorf("%v, log: %s", door.Problem(), log)
	}
	bad, err := filepath.Glob(filepath.Join(testdata, "bad_*.yaml"))
	if err != nil || len(bad) < 10 {
		t.Fatalf("%v, %v", bad, err)
	}
	for _, path := range bad {
		name := filepath.Base(path)
		replaceFile(t, filepath.Join(cfg.RulesDir, name), read(path))
		want := strings.TrimSpace(read(strings.TrimSuffix(path, ".yaml") + ".txt"))
		eventually(t, name, func() error {
			if got := door.Problem(); got == nil || got.Error() != want {
				return fmt.Errorf("%w, want %s", got, want)
			}
			return nil
		})
		ask()
		if err := os.Remove(filepath.Join(cfg.RulesDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "no problem", door.Problem)
}

// eventually waits until check gives nil.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}
