package memory

// The order of expiry is a binary heap of positions in entries, the earliest first. It is exact: a
// state whose expiry moves is moved at once, so the top tells whether anything has expired at all.

func (t *table) expiry(place int) int64 { return t.entries[t.order[place]].state.expiresAt }

// earliest is the first expiry, or never.
func (t *table) earliest() int64 {
	if len(t.order) == 0 {
		return never
	}
	return t.expiry(0)
}

// put puts a position at a place.
func (t *table) put(place int, position uint32) {
	t.order[place] = position
	t.places[position] = uint32(place) //nolint:gosec // G115: at most MostKeys.
}

// rise restores the order where the state at place may expire before those above it.
func (t *table) rise(place int) {
	position := t.order[place]
	expires := t.entries[position].state.expiresAt
	for place > 0 {
		parent := (place - 1) / 2
		if t.expiry(parent) <= expires {
			break
		}
		t.put(place, t.order[parent])
		place = parent
	}
	t.put(place, position)
}

// sink restores the order where the state at place may expire after those below it.
func (t *table) sink(place int) {
	position := t.order[place]
	expires := t.entries[position].state.expiresAt
	for {
		first := 2*place + 1
		if first >= len(t.order) {
			break
		}
		earliest := t.expiry(first)
		if second := first + 1; second < len(t.order) {
			if e := t.expiry(second); e < earliest {
				first, earliest = second, e
			}
		}
		if expires <= earliest {
			break
		}
		t.put(place, t.order[first])
		place = first
	}
	t.put(place, position)
}

// unorder takes the top out of the order.
func (t *table) unorder() {
	last := len(t.order) - 1
	t.order[0] = t.order[last]
	t.order = t.order[:last]
	if last > 0 {
		t.sink(0)
	}
}
