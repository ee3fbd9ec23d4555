package vectors

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden holds each committed file to the generator, and so to the arithmetic in Go.
func TestGolden(t *testing.T) {
	for _, program := range Programs() {
		made := Generate(program)
		if *update {
			text, err := json.MarshalIndent(made, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(program+".json", append(text, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		file, err := Load(program)
		if err != nil {
			t.Fatalf("%v: go test ./test/vectors -update writes the files", err)
		}
		if diff := cmp.Diff(file, made); diff != "" {
			t.Errorf("%s: the committed vectors differ from the arithmetic (-file +arithmetic):\n%s", program, diff)
		}
		statuses := map[any]int{}
		for _, v := range file.Vectors {
			statuses[v.Reply[0]]++
		}
		for _, status := range []string{"ALLOWED", "DENIED", "CLOCK_UNSAFE", "STATE_INCOMPATIBLE"} {
			if statuses[status] == 0 {
				t.Errorf("%s: no vector is %s", program, status)
			}
		}
	}
}
