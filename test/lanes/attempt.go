package lanes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// attemptMemory is how long a failed attempt is not repeated: a machine without
// a registry must not wait for one in each test package.
const attemptMemory = time.Hour

// attempt does something slow that can fail for reasons of the machine. Test
// processes take turns, and a failure is remembered for attemptMemory, so that
// the next one fails at once with the same reason. done asks whether it is
// needed at all.
func attempt(key string, done func() bool, do func() error) error {
	if done() {
		return nil
	}
	dir, err := cacheDir()
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(key))
	file := filepath.Join(dir, "attempt-"+hex.EncodeToString(sum[:8])+".json")

	lock, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", file, err)
	}
	if done() {
		return nil
	}

	var last failure
	if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &last) == nil {
		if until := last.At.Add(attemptMemory); time.Now().Before(until) && last.Key == key {
			return fmt.Errorf("%s (remembered until %s; remove %s to try again)",
				last.Reason, until.Local().Format(time.TimeOnly), file)
		}
	}
	if err := do(); err != nil {
		// Only a hint is lost if it cannot be kept.
		if text, e := json.Marshal(failure{Key: key, At: time.Now(), Reason: err.Error()}); e == nil {
			_ = os.WriteFile(file, text, 0o600)
		}
		return err
	}
	_ = os.Remove(file)
	return nil
}

// failure is what a file in the cache says.
type failure struct {
	Key    string    `json:"key"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}
