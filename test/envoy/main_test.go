package envoy

import (
	"os"
	"testing"

	"github.com/edgelimit/edgelimit/test/lanes"
)

func TestMain(m *testing.M) { os.Exit(lanes.Main(m)) }
