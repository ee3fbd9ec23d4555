package memory

import (
	"testing"

	"pgregory.net/rapid"
)

// unwanted gives names that are hard on an index: a few of them only, so that they come and go, and
// under naming whose keys are all zero, so that many have one hash.
func unwanted(rt *rapid.T) name {
	return name{w0: rapid.Uint64Range(0, 3).Draw(rt, "w0"), w2: rapid.Uint64Range(0, 40).Draw(rt, "w2"), w3: rapid.Uint64Range(0, 3).Draw(rt, "w3")}
}

// A table holds what a map would, whatever the names, and gives the earliest first.
func TestTableIsAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := naming{}
		if rapid.Bool().Draw(rt, "keyed") {
			n = newNaming()
		}
		table := table{naming: &n}
		plain := map[name]state{}
		for range rapid.IntRange(1, 400).Draw(rt, "steps") {
			k := unwanted(rt)
			hash := n.hash(k)
			position, present := table.seek(hash, &k)
			want, known := plain[k]
			if present != known || present && table.entries[position].state != want {
				rt.Fatalf("%+v: found %t, want %t", k, present, known)
			}
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0, 1, 2:
				if !present {
					s := state{last: 1, count: int64(len(plain)), expiresAt: rapid.Int64Range(1, 100).Draw(rt, "expires")}
					table.insert(hash, &k, s)
					plain[k] = s
				} else {
					s := &table.entries[position].state
					s.expiresAt += rapid.Int64Range(0, 50).Draw(rt, "later")
					table.sink(int(table.places[position]))
					plain[k] = *s
				}
			case 3, 4:
				if len(plain) > 0 {
					gone := table.removeEarliest()
					if gone.state != plain[gone.name] {
						rt.Fatalf("removed %+v, want %+v", gone, plain[gone.name])
					}
					for other, s := range plain {
						if s.expiresAt < gone.state.expiresAt {
							rt.Fatalf("removed %+v before %+v %+v", gone, other, s)
						}
					}
					delete(plain, gone.name)
				}
			case 5:
				if table.sparse() {
					table.shrink()
				}
			}
			verifyTable(t, &table)
			if len(table.entries) != len(plain) || t.Failed() {
				rt.Fatalf("%d entries, want %d", len(table.entries), len(plain))
			}
		}
	})
}

// The positions of a table go up to MostKeys, which an index slot holds beside the hash.
func TestSlotHoldsEveryPosition(t *testing.T) {
	t.Parallel()
	for _, position := range []uint32{0, 1, MostKeys - 1} {
		s := slot(0xfedcba9876543210, position)
		if s == 0 || uint32(s)-1 != position || s>>32 != 0x76543210 {
			t.Errorf("position %d: %x", position, s)
		}
	}
}

// What shrinks holds what it held, in memory that fits.
func TestTableShrinks(t *testing.T) {
	t.Parallel()
	n := newNaming()
	table := table{naming: &n}
	for i := range uint64(10_000) {
		k := name{w0: i, w1: 1, w2: 2, w3: 3}
		table.insert(n.hash(k), &k, state{expiresAt: 1 + int64(i)})
	}
	for len(table.entries) > 0 {
		table.removeEarliest()
		if table.sparse() {
			table.shrink()
			verifyTable(t, &table)
		}
		if held := len(table.entries); cap(table.entries) > max(4*held, smallest) || len(table.index) > max(16*held, 2*smallest) {
			t.Fatalf("%d entries, room for %d and %d slots", held, cap(table.entries), len(table.index))
		}
	}
}
