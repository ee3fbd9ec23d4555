package differential

import (
	"fmt"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/test/lanes"
	"github.com/edgelimit/edgelimit/test/vectors"
)

const noTTL = time.Duration(-1)

// TestVectorsUnderCallerClock runs every vector on each lane, at its own time by the clock argument.
func TestVectorsUnderCallerClock(t *testing.T) {
	for lane, server := range servers(t) {
		p := dial(t, server.Addr, 2)
		for _, program := range vectors.Programs() {
			file, err := vectors.Load(program)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range file.Vectors {
				m := vectors.Model(program, v.Policy)
				if ofSimulation(m, v.Before) {
					continue // Under a caller's clock this one is at home.
				}
				key := p.newKey()
				before := simulated(m, v.Before)
				p.put(t, m, key, before)
				want := m.Call(before, v.Now, v.Cost, true)
				if fmt.Sprint(want.Reply) != fmt.Sprint(v.Reply) {
					t.Fatalf("%s: the model says %v under a caller's clock, the vector %v", v.Name, want.Reply, v.Reply)
				}
				o := p.call(t, m, key, m.Args(v.Cost, v.Now))
				check(t, name(lane, program, v.Name), o, before, noTTL, want, 10*time.Second)
			}
		}
	}
}

// TestVectorsUnderServerClock runs every vector on a real Redis whose own clock is set to its time,
// and so holds lifetimes to the millisecond.
func TestVectorsUnderServerClock(t *testing.T) {
	server := lanes.StartFaketime(t)
	p := dial(t, server.Addr, 2)
	for _, program := range vectors.Programs() {
		file, err := vectors.Load(program)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range file.Vectors {
			m := vectors.Model(program, v.Policy)
			key := p.newKey()
			server.SetTime(time.UnixMilli(v.Now))
			p.put(t, m, key, v.Before)
			want := m.Call(v.Before, v.Now, v.Cost, false)
			o := p.call(t, m, key, m.Args(v.Cost, 0))
			check(t, name(program, v.Name), o, v.Before, noTTL, want, 0)
		}
	}
}
