package lanes

import (
	"errors"
	"strings"
	"testing"
)

// Not parallel: the cache directory comes from the environment
func TestAFailedAttemptIsRemembered(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	calls := 0
	never := func() bool { return false }
	fail := func() error { calls++; return errors.New("no route") }

	if err := attempt("a", never, fail); err == nil || err.Error() != "no route" {
		t.Fatalf("first: %v", err)
	}
	err := attempt("a", never, fail)
	if err == nil || !strings.Contains(err.Error(), "no route (remembered until") {
		t.Errorf("second: %v", err)
	}
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
	if err := attempt("a", func() bool { return true }, fail); err != nil {
		t.Errorf("what is there already: %v", err)
	}
	if err := attempt("b", never, func() error { return nil }); err != nil {
		t.Errorf("another key: %v", err)
	}
}
