package breaker

// Stored is what a breaker stores. The zero value means that nothing is stored, which decides as a
// closed breaker that has counted nothing.
type Stored struct {
	Present      bool
	LastObserved int64 // effective time of the last write, ms
	State        State
	// Since is when the state began: of an open breaker the trip, of a half-open one the end of the
	// open timeout. It tells the periods of one state apart: each closed period but the first begins
	// after an open timeout of at least 1 ms. 0 is the closed period that began with nothing stored.
	Since     int64
	Failures  int64 // consecutive failures, while closed under ConsecutiveFailures; 0 otherwise
	Successes int64 // successful probes, while half-open; 0 otherwise
	Probes    [MostProbes]Probe
	Ring      [MostBuckets]Bucket
}

// Probe is a slot of a half-open breaker. The zero value is a slot that was never taken, or was freed.
type Probe struct {
	ExpiresAt int64 // ms; a lease is over at that moment
	Token     string
}

// Bucket counts results in a part of the window. The zero value has counted nothing.
type Bucket struct {
	ID       int64 // effective time / bucket width
	Calls    int64 // 0..MostCalls
	Failures int64 // 0..Calls
}

// TokenLength is the length of a permit's token: 128 random bits as lower-case hexadecimal.
const TokenLength = 32

// ValidToken reports whether a token is TokenLength characters of 0-9 a-f.
func ValidToken(token string) bool {
	if len(token) != TokenLength {
		return false
	}
	for i := range len(token) {
		if c := token[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Valid reports whether a stored state is one that this machine writes.
func (m Machine) Valid(s Stored) bool {
	if !s.Present {
		return s == Stored{}
	}
	if s.LastObserved < 0 || s.LastObserved > maxNow || s.Since < 0 || s.Since > s.LastObserved {
		return false
	}
	closed, halfOpen := s.State == StateClosed, s.State == StateHalfOpen
	if !closed && !halfOpen && s.State != StateOpen {
		return false
	}
	if s.Failures < 0 || s.Failures > 0 && (!closed || s.Failures >= m.Threshold) {
		return false
	}
	if s.Successes < 0 || s.Successes > 0 && (!halfOpen || s.Successes >= m.ProbeSuccesses) {
		return false
	}
	for i, p := range s.Probes {
		if p != (Probe{}) && (!halfOpen || int64(i) >= m.MaxProbes || !ValidToken(p.Token) ||
			p.ExpiresAt <= s.Since || p.ExpiresAt > s.LastObserved+m.ProbeLeaseMillis) {
			return false
		}
	}
	for i, b := range s.Ring {
		if b != (Bucket{}) && (!closed || int64(i) >= m.Buckets || b.ID < 0 || b.ID > s.LastObserved/m.BucketMillis ||
			b.ID%m.Buckets != int64(i) || b.Calls < 1 || b.Calls > MostCalls || b.Failures < 0 || b.Failures > b.Calls) {
			return false
		}
	}
	return true
}
