package memory

// entry is a state with its name: 64 bytes, which is what a cache line has, and no pointer, so that the
// collector need not look at it.
type entry struct {
	name  name
	state state
}

// smallest is the capacity up to which a table's memory is not worth giving back: a subject that comes
// and goes need not allocate each time.
const smallest = 8

// table holds states by name. Entries lie dense in one slice. They are found through index, a hash table
// with open addressing whose slots are 0, or hold 32 bits of the hash above the position plus one. It is
// kept at most three quarters full, and what follows a removed slot moves up, so that there are no
// gravestones to clear away. The expiry of entries is in order; see expiry.go.
type table struct {
	naming  *naming
	index   []uint64 // as many as a power of two, or none
	entries []entry
	places  []uint32 // where each entry is in order
	order   []uint32 // positions of entries, a heap by expiry
}

// slot packs the hash and the position of an entry.
func slot(hash uint64, position uint32) uint64 { return hash<<32 | uint64(position+1) }

// mask is what makes a hash a place in the index.
func (t *table) mask() uint64 { return uint64(len(t.index) - 1) } //nolint:gosec // G115: the index is not empty.

// seek gives the position of the entry with a name, and whether there is one.
func (t *table) seek(hash uint64, k *name) (uint32, bool) {
	if len(t.index) == 0 {
		return 0, false
	}
	mask := uint64(len(t.index) - 1) //nolint:gosec // G115: there are some.
	for i := hash & mask; ; i = (i + 1) & mask {
		s := t.index[i]
		if s == 0 {
			return 0, false
		}
		if s>>32 == hash&0xffffffff {
			if position := uint32(s&0xffffffff) - 1; t.entries[position].name == *k {
				return position, true
			}
		}
	}
}

// insert adds an entry whose name is not there.
func (t *table) insert(hash uint64, k *name, s state) {
	position := uint32(len(t.entries)) //nolint:gosec // G115: at most MostKeys.
	if 4*(len(t.entries)+1) > 3*len(t.index) {
		t.reindex(indexFor(len(t.entries) + 1))
	}
	t.link(slot(hash, position))
	t.entries = append(t.entries, entry{name: *k, state: s})
	t.places = append(t.places, position)
	t.order = append(t.order, position)
	t.rise(int(position))
}

// indexFor is how many slots an index has that has just grown to hold n entries.
func indexFor(n int) int {
	slots := 2 * smallest
	for 3*slots < 4*n {
		slots *= 2
	}
	return slots
}

// link puts a slot's content at the first free place from its home on.
func (t *table) link(s uint64) {
	mask := t.mask()
	i := s >> 32 & mask
	for t.index[i] != 0 {
		i = (i + 1) & mask
	}
	t.index[i] = s
}

// reindex moves the index to one of so many slots. The entries are not looked at.
func (t *table) reindex(slots int) {
	old := t.index
	t.index = make([]uint64, slots)
	for _, s := range old {
		if s != 0 {
			t.link(s)
		}
	}
}

// locate gives the place in the index that holds an entry's position.
func (t *table) locate(position uint32) (i, mask uint64) {
	mask = t.mask()
	want := slot(t.naming.hash(t.entries[position].name), position)
	for i = want >> 32 & mask; t.index[i] != want; {
		i = (i + 1) & mask
	}
	return i, mask
}

// unlink takes an entry out of the index. What follows it moves up as far as its home allows, so that
// every entry stays reachable from its home without a gap.
func (t *table) unlink(position uint32) {
	gap, mask := t.locate(position)
	for i := (gap + 1) & mask; t.index[i] != 0; i = (i + 1) & mask {
		home := t.index[i] >> 32 & mask
		if (i-home)&mask >= (i-gap)&mask {
			t.index[gap] = t.index[i]
			gap = i
		}
	}
	t.index[gap] = 0
}

// removeEarliest removes the entry that expires first and gives it. The last entry takes its position,
// so that entries stay dense.
func (t *table) removeEarliest() entry {
	position := t.order[0]
	gone := t.entries[position]
	t.unlink(position)
	t.unorder()
	if last := uint32(len(t.entries) - 1); position != last { //nolint:gosec // G115: at most MostKeys.
		i, _ := t.locate(last)
		t.index[i] = t.index[i]&^0xffffffff | uint64(position+1)
		t.entries[position], t.places[position] = t.entries[last], t.places[last]
		t.order[t.places[position]] = position
	}
	t.entries, t.places = t.entries[:len(t.entries)-1], t.places[:len(t.places)-1]
	return gone
}

// sparse reports whether three quarters of the table's memory are unused.
func (t *table) sparse() bool {
	return cap(t.entries) > smallest && len(t.entries) <= cap(t.entries)/4
}

// shrink gives back what is above twice the need.
func (t *table) shrink() {
	n := len(t.entries)
	if n == 0 {
		*t = table{naming: t.naming}
		return
	}
	t.entries = append(make([]entry, 0, 2*n), t.entries...)
	t.places = append(make([]uint32, 0, 2*n), t.places...)
	t.order = append(make([]uint32, 0, 2*n), t.order...)
	t.reindex(indexFor(n))
}
