package memory

// kind is the type of what stands at a key. The zero value means nothing.
type kind uint8

const (
	kindNone kind = iota
	kindString
	kindHash
	kindSortedSet
)

var kindWords = [...]string{kindNone: "none", kindString: "string", kindHash: "hash", kindSortedSet: "zset"}

// endless is the expiry of a key without a lifetime, and unplaced its place in the order of expiry.
const (
	endless  = never
	unplaced = -1
)

// record is what stands at a key.
type record struct {
	key       string
	kind      kind
	text      string
	fields    map[string]string
	members   *sortedSet
	expiresAt int64 // ms; the key exists at that moment and is gone one later
	place     int   // its position in keyspace.order, or unplaced
}

// keyspace holds records by key, and those with a lifetime in a heap by expiry. It is not safe for
// concurrent use.
type keyspace struct {
	most    int
	records map[string]*record
	order   []*record
	peak    int // the greatest number of records since the map was made
}

func newKeyspace(most int) keyspace {
	return keyspace{most: most, records: make(map[string]*record)}
}

// find gives the record at a key that exists at now, or nil. What it finds expired is removed.
func (s *keyspace) find(key string, now int64) *record {
	r := s.records[key]
	if r != nil && now > r.expiresAt {
		s.remove(r)
		return nil
	}
	return r
}

// create makes an empty record without a lifetime at a key that does not exist. It fails at the
// bound, unless there is a record that has expired, whose room it takes.
func (s *keyspace) create(key string, k kind, now int64) (*record, bool) {
	if len(s.records) >= s.most && s.reclaim(now, 1) == 0 {
		return nil, false
	}
	r := &record{key: key, kind: k, expiresAt: endless, place: unplaced}
	s.records[key] = r
	s.peak = max(s.peak, len(s.records))
	return r, true
}

// expire sets the moment after which a record is gone; endless takes its lifetime away.
func (s *keyspace) expire(r *record, at int64) {
	if r.expiresAt == at {
		return
	}
	r.expiresAt = at
	switch {
	case at == endless:
		s.displace(r)
	case r.place == unplaced:
		r.place = len(s.order)
		s.order = append(s.order, r)
		s.rise(r.place)
	default:
		s.settle(r.place)
	}
}

func (s *keyspace) remove(r *record) {
	if r.place != unplaced {
		s.displace(r)
	}
	delete(s.records, r.key)
}

// reclaim removes up to most records that have expired, and says how many it did.
func (s *keyspace) reclaim(now int64, most int) int {
	removed := 0
	for removed < most && len(s.order) > 0 && now > s.order[0].expiresAt {
		s.remove(s.order[0])
		removed++
	}
	return removed
}

// smallMap is the size up to which a map's memory is not worth giving back.
const smallMap = 64

// shrink gives memory back where three quarters of it are unused: maps never shrink by themselves.
// Each rebuilding is paid for by the removals before it.
func (s *keyspace) shrink() {
	n := len(s.records)
	if s.peak <= smallMap || n > s.peak/4 {
		return
	}
	records := make(map[string]*record, n)
	for key, r := range s.records {
		records[key] = r
	}
	s.records, s.peak = records, n
	s.order = append(make([]*record, 0, len(s.order)), s.order...)
}

// The order of expiry is a binary heap, the earliest first.

func (s *keyspace) exchange(a, b int) {
	s.order[a], s.order[b] = s.order[b], s.order[a]
	s.order[a].place, s.order[b].place = a, b
}

// settle restores the order where the record at place has moved either way.
func (s *keyspace) settle(place int) {
	r := s.order[place]
	s.rise(place)
	s.fall(r.place)
}

func (s *keyspace) rise(place int) {
	for place > 0 {
		parent := (place - 1) / 2
		if s.order[parent].expiresAt <= s.order[place].expiresAt {
			return
		}
		s.exchange(parent, place)
		place = parent
	}
}

func (s *keyspace) fall(place int) {
	for {
		first := 2*place + 1
		if first >= len(s.order) {
			return
		}
		if second := first + 1; second < len(s.order) && s.order[second].expiresAt < s.order[first].expiresAt {
			first = second
		}
		if s.order[place].expiresAt <= s.order[first].expiresAt {
			return
		}
		s.exchange(place, first)
		place = first
	}
}

// displace takes a record out of the order.
func (s *keyspace) displace(r *record) {
	place, last := r.place, len(s.order)-1
	if place != last {
		s.exchange(place, last)
	}
	s.order[last] = nil
	s.order = s.order[:last]
	r.place = unplaced
	if place != last {
		s.settle(place)
	}
}
