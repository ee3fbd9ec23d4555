package lanes

import (
	"strings"
	"testing"
)

func TestWhatIsMissingNamesTheThreeWays(t *testing.T) {
	t.Parallel()
	text := (&missingError{what: "Redis", tried: []string{"a container: refused"}}).Error()
	for _, want := range []string{"no Redis", "a container: refused", addrEnv, "Docker", imageEnv, "redis-server", "apt-get install"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}
