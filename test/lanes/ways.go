package lanes

import (
	"fmt"
	"strings"
)

// threeWays is what a person who has no Redis needs to read.
const threeWays = `The tests need a Redis. Any one of these will do:
  1. an address:      EDGELIMIT_TEST_REDIS_ADDR=127.0.0.1:6379 (never flushed or stopped)
  2. Docker:          a reachable engine; EDGELIMIT_TEST_REDIS_IMAGE chooses the image
  3. a redis-server:  in PATH, for example: apt-get install redis-server libfaketime`

// missingError says which ways were tried and how each of them ended.
type missingError struct {
	what  string
	tried []string
}

func (e *missingError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lanes: no %s\n", e.what)
	for _, reason := range e.tried {
		fmt.Fprintf(&b, "  tried %s\n", strings.ReplaceAll(strings.TrimSpace(reason), "\n", "\n    "))
	}
	b.WriteString(threeWays)
	return b.String()
}
