package cacheredis

import (
	"context"
	"sync"
)

type admissionResult uint8

const (
	admissionInvalid admissionResult = iota
	admissionGranted
	admissionFull
	admissionClosed
)

// admission bounds evaluations in flight. A slot is free again only when its command has ended.
type admission struct {
	mu     sync.Mutex
	most   int
	used   int
	closed bool
	empty  chan struct{} // closed once draining has begun and no slot is taken
}

func (a *admission) init(most int) {
	a.most = most
	a.empty = make(chan struct{})
}

func (a *admission) enter() admissionResult {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return admissionClosed
	}
	if a.used == a.most {
		return admissionFull
	}
	a.used++
	return admissionGranted
}

func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used--
	if a.closed && a.used == 0 {
		close(a.empty)
	}
}

func (a *admission) drain(ctx context.Context) error {
	a.mu.Lock()
	if !a.closed {
		a.closed = true
		if a.used == 0 {
			close(a.empty)
		}
	}
	a.mu.Unlock()
	select {
	case <-a.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *admission) inUse() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}
