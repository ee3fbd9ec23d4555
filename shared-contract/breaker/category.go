package breaker

// The closed sets of this contract. Their words are stable: they are what programs store and answer,
// and what logs and metrics show.

// State is what a breaker is in.
type State uint8

// The states. The zero value is invalid.
const (
	StateInvalid State = iota
	// StateClosed: calls pass, and their results are counted.
	StateClosed
	// StateOpen: calls are rejected until the open timeout is over.
	StateOpen
	// StateHalfOpen: a bounded number of probes pass, the rest is rejected.
	StateHalfOpen
)

// PermitKind says as what a call was let through.
type PermitKind uint8

// The kinds. The zero value is invalid.
const (
	PermitInvalid PermitKind = iota
	// PermitCall: the breaker was closed.
	PermitCall
	// PermitProbe: the breaker was half-open, and the call holds one of its slots under a lease.
	PermitProbe
)

// Result is what became of a call.
type Result uint8

// The results. The zero value is invalid.
const (
	ResultInvalid Result = iota
	// ResultSuccess: the resource did what it should.
	ResultSuccess
	// ResultFailure: the resource failed, or took too long.
	ResultFailure
	// ResultNeither: the call says nothing about the resource, such as one that its caller gave up. It
	// counts nothing and frees the slot of a probe.
	ResultNeither
)

// Status is what a transition concluded. Its words are those that the programs reply.
type Status uint8

// The statuses. The zero value is invalid.
const (
	StatusUnspecified Status = iota
	// StatusCall: Acquire let a call through, closed.
	StatusCall
	// StatusProbe: Acquire let a probe through and leased it a slot.
	StatusProbe
	// StatusRejected: Acquire let nothing through; nothing is stored.
	StatusRejected
	// StatusCounted: Record counted the result.
	StatusCounted
	// StatusReleased: Record counted nothing, as was asked, and freed the slot of a probe.
	StatusReleased
	// StatusLate: the result came after the period or the lease that it belongs to; nothing is stored.
	StatusLate
	// StatusRead: Read tells; nothing is stored.
	StatusRead
	// StatusClockUnsafe: the clock went back further than the policy tolerates; nothing is stored.
	StatusClockUnsafe
	// StatusStateIncompatible: what is stored is not this policy's, or malformed.
	StatusStateIncompatible
	// StatusInvalid: the arguments were out of range.
	StatusInvalid
)

// RequestFault says what is wrong with a request.
type RequestFault uint8

// The faults of a request. The zero value is invalid.
const (
	FaultInvalid RequestFault = iota
	// FaultUnknownPolicy: no policy has this ID.
	FaultUnknownPolicy
	// FaultResource: the resource digest is missing.
	FaultResource
	// FaultPermit: the permit is none that Acquire gave, or another revision's.
	FaultPermit
	// FaultResult: the result is none of the three.
	FaultResult
	// FaultDeadline: neither the request nor its context has a deadline.
	FaultDeadline
)

var (
	stateWords  = []string{"INVALID", "closed", "open", "half-open"}
	permitWords = []string{"INVALID", "CALL", "PROBE"}
	resultWords = []string{"INVALID", "SUCCESS", "FAILURE", "NEITHER"}
	statusWords = []string{
		"UNSPECIFIED", "CALL", "PROBE", "REJECTED", "COUNTED", "RELEASED", "LATE", "READ", "CLOCK_UNSAFE", "STATE_INCOMPATIBLE",
		"INVALID",
	}
	faultWords = []string{"INVALID", "UNKNOWN_POLICY", "RESOURCE", "PERMIT", "RESULT", "DEADLINE"}
)

func word(words []string, i uint8) string {
	if int(i) >= len(words) {
		return words[0]
	}
	return words[i]
}

// parse gives the member of a closed set that a word stands for; ok is false for any other word, that
// of the invalid zero value among them.
func parse[T ~uint8](words []string, text string) (member T, ok bool) {
	for i := 1; i < len(words); i++ {
		if words[i] == text {
			return T(i), true
		}
	}
	return 0, false
}

// members lists all valid members of a closed set in order.
func members[T ~uint8](words []string) []T {
	all := make([]T, 0, len(words)-1)
	for i := 1; i < len(words); i++ {
		all = append(all, T(i))
	}
	return all
}

// String gives the state's word.
func (s State) String() string { return word(stateWords, uint8(s)) }

// String gives the kind's word.
func (k PermitKind) String() string { return word(permitWords, uint8(k)) }

// String gives the result's word.
func (r Result) String() string { return word(resultWords, uint8(r)) }

// String gives the status's word.
func (s Status) String() string { return word(statusWords, uint8(s)) }

// String gives the fault's word.
func (f RequestFault) String() string { return word(faultWords, uint8(f)) }

// ParseState is the inverse of String for the three valid states.
func ParseState(text string) (State, bool) { return parse[State](stateWords, text) }

// ParsePermitKind is the inverse of String for the two valid kinds.
func ParsePermitKind(text string) (PermitKind, bool) { return parse[PermitKind](permitWords, text) }

// ParseResult is the inverse of String for the three valid results.
func ParseResult(text string) (Result, bool) { return parse[Result](resultWords, text) }

// ParseStatus is the inverse of String for the valid statuses.
func ParseStatus(text string) (Status, bool) { return parse[Status](statusWords, text) }

// States lists all states.
func States() []State { return members[State](stateWords) }

// PermitKinds lists all kinds of permits.
func PermitKinds() []PermitKind { return members[PermitKind](permitWords) }

// Results lists all results.
func Results() []Result { return members[Result](resultWords) }

// Statuses lists all statuses.
func Statuses() []Status { return members[Status](statusWords) }

// RequestFaults lists all faults of a request.
func RequestFaults() []RequestFault { return members[RequestFault](faultWords) }
