package replay_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/accesslog"
	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/replay"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// TestSampleLog replays the sample under the policies of docs/examples/replay on the memory provider
// and compares each figure with those of model_test.go.
func TestSampleLog(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load(config.Source{File: filepath.Join("..", "..", "..", "..", "docs", "examples", "replay", "policies.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	simulation, err := composition.NewSimulation(t.Context(), cfg.RateLimit, config.ProviderMemory)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(sampleLog)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	digest := digester(t)
	summary, err := replay.Run(t.Context(), replay.Config{
		Simulator: simulation, Digest: digest, Policies: cfg.RateLimit.Policies.All(),
		Subject: accesslog.SubjectIP, Bounds: wide, Logs: []replay.Log{{Name: "sample", Reader: f}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := simulation.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if summary.Lines != 10_000 || summary.Requests != 10_000 {
		t.Errorf("%+v", summary)
	}
	models := map[string]figures{}
	for _, p := range cfg.RateLimit.Policies.All() {
		switch parameters := p.Parameters().(type) {
		case ratelimit.FixedWindowParameters:
			models[string(p.ID())] = fixedWindowModel(t, parameters.Limit, parameters.Window.Milliseconds()/1000)
		case ratelimit.TokenBucketParameters:
			models[string(p.ID())] = tokenBucketModel(t, parameters.Capacity, parameters.RefillPeriod.Milliseconds()/parameters.RefillTokens/1000)
		case ratelimit.GCRAParameters:
			models[string(p.ID())] = tokenBucketModel(t, parameters.Burst, parameters.Period.Milliseconds()/parameters.Limit/1000)
		case ratelimit.SlidingWindowLogParameters:
			models[string(p.ID())] = logModel(t, parameters.Limit, parameters.Window.Milliseconds()/1000)
		case ratelimit.SlidingWindowCounterParameters:
		}
	}
	if len(models) != 4 {
		t.Fatalf("%d models", len(models))
	}
	for _, got := range summary.Policies {
		want, ok := models[got.PolicyID]
		if !ok {
			continue
		}
		if got.Admitted != want.admitted || got.Denied != want.denied || want.denied == 0 || got.DeniedSubjects != len(want.deniedBy) ||
			got.Busiest.Requests != want.busiest || got.Busiest.FromMillis != 1000*want.busiestFrom {
			t.Errorf("%+v, busiest %+v, want %+v", got, got.Busiest, want)
		}
		compareSubjects(t, got, want, digest)
	}
}

// compareSubjects holds the most denied subjects to the model's, by host name.
func compareSubjects(t *testing.T, got replay.PolicySummary, want figures, digest func(string) (ratelimit.SubjectDigest, error)) {
	t.Helper()
	byDigest := make(map[string]int64)
	for host, n := range want.deniedBy {
		d, err := digest(host)
		if err != nil {
			t.Fatal(err)
		}
		byDigest[d.String()] = n
	}
	least := int64(0)
	for i, subject := range got.MostDenied {
		if byDigest[subject.Digest] != subject.Denied || i > 0 && subject.Denied > least {
			t.Errorf("%s: subject %d: %+v, want %d", got.PolicyID, i, subject, byDigest[subject.Digest])
		}
		least = subject.Denied
		delete(byDigest, subject.Digest)
	}
	for _, n := range byDigest {
		if n > least {
			t.Errorf("%s: a subject with %d denials is missing", got.PolicyID, n)
		}
	}
}
