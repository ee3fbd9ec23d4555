package memory

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain holds the package to its word that nothing runs in the background.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
