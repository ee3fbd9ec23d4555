package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/test/lanes"
)

// asMetronome makes a copy of the test binary a metronome, for the duration that it holds.
const asMetronome = "EDGELIMIT_TEST_METRONOME"

// lateness is by how much timers that wait for the command timeout ended late.
type lateness struct{ P999, Max time.Duration }

// metronome waits as often as evaluations come, each time for as long as they may take, and prints how
// late it was: what the machine itself costs, in a process that has nothing else to do.
func metronome() (code int) {
	lasts, err := time.ParseDuration(os.Getenv(asMetronome))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	n := int(lasts.Seconds() * holeRate)
	late := make([]time.Duration, n)
	began := time.Now()
	var all sync.WaitGroup
	for i := range n {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / holeRate)))
		all.Go(func() {
			from := time.Now()
			time.Sleep(holeTimeout)
			late[i] = time.Since(from) - holeTimeout
		})
	}
	all.Wait()
	slices.Sort(late)
	text, err := json.Marshal(lateness{P999: late[n*999/1000], Max: late[n-1]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(string(text))
	return 0
}

// startMetronome starts one and gives what it said when it has ended.
func startMetronome(t testing.TB, lasts time.Duration) (said func() lateness) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	command := exec.Command(self, "-test.run=^$")
	command.Env = append(os.Environ(), asMetronome+"="+lasts.String())
	command.Stdout, command.Stderr = &output, &output
	if err := lanes.Spawn(command); err != nil {
		t.Fatal(err)
	}
	return func() lateness {
		var late lateness
		err := command.Wait()
		if err == nil {
			err = json.Unmarshal([]byte(output.String()), &late)
		}
		if err != nil {
			t.Errorf("metronome: %v: %s", err, output.String())
		}
		return late
	}
}
