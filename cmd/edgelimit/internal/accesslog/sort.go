package accesslog

import (
	"container/heap"
	"errors"
	"io"
	"time"
)

// Item is what is held of an entry until its turn: the caller's own value, not the line.
type Item[T any] struct {
	Millis int64 // the entry's time
	Source int   // which of several streams, counted from 0
	Line   int64 // counted from 1
	Value  T
}

// before orders by time, then by stream and line, so that equal times keep the order of the file.
func (i Item[T]) before(other Item[T]) bool {
	if i.Millis != other.Millis {
		return i.Millis < other.Millis
	}
	if i.Source != other.Source {
		return i.Source < other.Source
	}
	return i.Line < other.Line
}

// Bounds say how far out of order lines may be.
type Bounds struct {
	// Window is the log time by which a line may be earlier than another before it. Zero wants lines
	// in order.
	Window time.Duration
	// Lines is how many items are held at most, 1 or more. Where they do not suffice for Window, less
	// of it is sorted, and what comes too late is reported, not evaluated in disorder.
	Lines int
}

// Stream gives items; io.EOF ends it.
type Stream[T any] func() (Item[T], error)

// Sorted puts a stream into the order of time within bounds. An item that is earlier than one that
// was already given is too late: late is called with it, and it is not given.
func Sorted[T any](next Stream[T], bounds Bounds, late func(Item[T])) Stream[T] {
	s := &sorter[T]{next: next, bounds: bounds, late: late}
	return s.pop
}

type sorter[T any] struct {
	next    Stream[T]
	bounds  Bounds
	late    func(Item[T])
	waiting items[T]
	newest  int64 // the latest time read
	given   int64 // the latest time given
	ended   bool
}

func (s *sorter[T]) pop() (Item[T], error) {
	for !s.ended && !s.due() {
		item, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			s.ended = true
		case err != nil:
			return Item[T]{}, err
		case item.Millis < s.given:
			s.late(item)
		default:
			s.newest = max(s.newest, item.Millis)
			heap.Push(&s.waiting, item)
		}
	}
	if len(s.waiting) == 0 {
		return Item[T]{}, io.EOF
	}
	item, _ := heap.Pop(&s.waiting).(Item[T])
	s.given = item.Millis
	return item, nil
}

// due reports whether no line that is still within the bounds can come before the first one waiting.
// A line as early as Window allows may have that one's very time, and then comes after it as in the
// file.
func (s *sorter[T]) due() bool {
	if len(s.waiting) == 0 {
		return false
	}
	return len(s.waiting) >= s.bounds.Lines || s.waiting[0].Millis <= s.newest-s.bounds.Window.Milliseconds()
}

// Merge gives the items of several sorted streams in one order.
func Merge[T any](streams ...Stream[T]) Stream[T] {
	m := &merger[T]{streams: streams}
	return m.pop
}

type merger[T any] struct {
	streams []Stream[T]
	heads   items[T]
	begun   bool
}

func (m *merger[T]) pop() (Item[T], error) {
	if !m.begun {
		m.begun = true
		for i := range m.streams {
			if err := m.pull(i); err != nil {
				return Item[T]{}, err
			}
		}
	}
	if len(m.heads) == 0 {
		return Item[T]{}, io.EOF
	}
	item, _ := heap.Pop(&m.heads).(Item[T])
	return item, m.pull(item.Source)
}

// pull takes the next item of a stream. The stream's place is the item's source from here on.
func (m *merger[T]) pull(source int) error {
	item, err := m.streams[source]()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	item.Source = source
	heap.Push(&m.heads, item)
	return nil
}

// items is a heap by time.
type items[T any] []Item[T]

func (h items[T]) Len() int           { return len(h) }
func (h items[T]) Less(i, j int) bool { return h[i].before(h[j]) }
func (h items[T]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is container/heap's.
func (h *items[T]) Push(x any) {
	item, _ := x.(Item[T])
	*h = append(*h, item)
}

// Pop is container/heap's.
func (h *items[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
