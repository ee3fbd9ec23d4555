package memory

import "github.com/edgelimit/edgelimit/shared-contract/algorithm"

// firstRoom is how many entries a new log has room for.
const firstRoom = 4

// ring holds the entries of one log, oldest first from first on, around the end of the slice.
type ring struct {
	slots []algorithm.SlidingLogEntry
	first int
	count int
}

// pieces are the entries in their order.
func (r *ring) pieces() algorithm.SlidingLogEntries {
	if end := r.first + r.count; end > len(r.slots) {
		return algorithm.SlidingLogEntries{Older: r.slots[r.first:], Newer: r.slots[:end-len(r.slots)]}
	}
	return algorithm.SlidingLogEntries{Older: r.slots[r.first : r.first+r.count]}
}

// resize moves the entries to room for as many as given.
func (r *ring) resize(room int) {
	slots := make([]algorithm.SlidingLogEntry, room)
	all := r.pieces()
	copy(slots[copy(slots, all.Older):], all.Newer)
	r.slots, r.first = slots, 0
}

// advance drops the dead and appends one entry. A ring doubles up to the limit, which the live entries
// never exceed, and gives memory back where three quarters of it are unused.
func (r *ring) advance(step algorithm.SlidingLogStep, limit int) {
	r.count -= step.Dead
	if len(r.slots) > 0 {
		r.first = (r.first + step.Dead) % len(r.slots)
	}
	switch need := r.count + 1; {
	case need > len(r.slots):
		r.resize(min(max(2*len(r.slots), firstRoom), limit))
	case len(r.slots) > 2*firstRoom && need <= len(r.slots)/4:
		r.resize(2 * need)
	}
	r.slots[(r.first+r.count)%len(r.slots)] = step.Entry
	r.count++
}

// logs are the rings of one shard's states, by the place that a state keeps. Places are used again.
type logs struct {
	rings []ring
	free  []int64
}

// entries are those of a state, or none where the state is absent.
func (l *logs) entries(s *state) algorithm.SlidingLogEntries {
	if !s.present() {
		return algorithm.SlidingLogEntries{}
	}
	return l.rings[s.count].pieces()
}

// open gives the place of a new, empty log.
func (l *logs) open() int64 {
	if n := len(l.free); n > 0 {
		place := l.free[n-1]
		l.free = l.free[:n-1]
		return place
	}
	l.rings = append(l.rings, ring{})
	return int64(len(l.rings) - 1)
}

func (l *logs) advance(place int64, step algorithm.SlidingLogStep, limit int64) {
	l.rings[place].advance(step, int(limit))
}

// close gives a log's memory and its place back.
func (l *logs) close(place int64) {
	l.rings[place] = ring{}
	l.free = append(l.free, place)
}

// compact moves the logs of these states together, and drops the places that are free.
func (l *logs) compact(entries []entry) {
	used := len(l.rings) - len(l.free)
	if used == 0 {
		*l = logs{}
		return
	}
	rings := make([]ring, 0, 2*used)
	for i := range entries {
		if entries[i].state.logged() {
			rings = append(rings, l.rings[entries[i].state.count])
			entries[i].state.count = int64(len(rings) - 1)
		}
	}
	l.rings, l.free = rings, nil
}
