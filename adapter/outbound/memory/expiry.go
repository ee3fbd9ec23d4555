package memory

// The order of expiry is a binary heap of positions in entries, the earliest first. It is exact: a
// state whose expiry moves is moved at once, so the top tells whether anything has expired at all.

func (s *shard) expiry(place int) int64 { return s.entries[s.order[place]].state.expiresAt }

func (s *shard) swap(a, b int) {
	s.order[a], s.order[b] = s.order[b], s.order[a]
	s.entries[s.order[a]].place = uint32(a) //nolint:gosec // G115: at most MostKeys.
	s.entries[s.order[b]].place = uint32(b) //nolint:gosec // G115: at most MostKeys.
}

// rise restores the order where the state at place may expire before those above it.
func (s *shard) rise(place int) {
	for place > 0 {
		parent := (place - 1) / 2
		if s.expiry(parent) <= s.expiry(place) {
			return
		}
		s.swap(parent, place)
		place = parent
	}
}

// sink restores the order where the state at place may expire after those below it.
func (s *shard) sink(place int) {
	for {
		first := 2*place + 1
		if first >= len(s.order) {
			return
		}
		if second := first + 1; second < len(s.order) && s.expiry(second) < s.expiry(first) {
			first = second
		}
		if s.expiry(place) <= s.expiry(first) {
			return
		}
		s.swap(place, first)
		place = first
	}
}

// note publishes the earliest expiry, which other shards' calls read without the lock.
func (s *shard) note() {
	earliest := int64(never)
	if len(s.order) > 0 {
		earliest = s.expiry(0)
	}
	if s.earliest.Load() != earliest {
		s.earliest.Store(earliest)
	}
}
