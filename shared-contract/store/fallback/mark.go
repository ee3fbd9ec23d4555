package fallback

import (
	"context"
	"sync/atomic"
)

// Side is one of the two stores.
type Side uint8

const (
	// SideInvalid is the invalid zero value.
	SideInvalid Side = iota
	// SidePrimary is the first store.
	SidePrimary
	// SideSecondary is the one that serves while the first is unreachable.
	SideSecondary
)

var sideWords = [...]string{SideInvalid: "invalid", SidePrimary: "primary", SideSecondary: "secondary"}

// String gives the side's word.
func (s Side) String() string {
	if int(s) >= len(sideWords) {
		return sideWords[SideInvalid]
	}
	return sideWords[s]
}

// Mark learns which store served the calls that were made with its context.
type Mark struct{ served atomic.Uint32 }

// Served is the store that served the last call: its answer, a failure too, is what the caller got. It
// is SideInvalid before the first one.
func (m *Mark) Served() Side { return Side(m.served.Load()) } //nolint:gosec // G115: one of three.

type markKey struct{}

// WithMark gives a context whose calls are marked, and the mark.
func WithMark(ctx context.Context) (context.Context, *Mark) {
	m := new(Mark)
	return context.WithValue(ctx, markKey{}, m), m
}

func mark(ctx context.Context, side Side) {
	if m, ok := ctx.Value(markKey{}).(*Mark); ok {
		m.served.Store(uint32(side))
	}
}
