package ratelimit

// The closed sets of this contract. Their words are stable: they are what the JSON API, logs and
// metrics show.

// Algorithm names how a policy decides.
type Algorithm uint8

// The algorithms. The zero value is invalid.
const (
	AlgorithmInvalid Algorithm = iota
	AlgorithmFixedWindow
	AlgorithmSlidingWindowCounter
	AlgorithmTokenBucket
	AlgorithmGCRA
	AlgorithmSlidingWindowLog
)

// Source says where a decision was taken, and so where the state lives that it rests on.
type Source uint8

// The sources. The zero value is invalid.
const (
	SourceInvalid Source = iota
	// SourceGlobalRedis is a Redis that all instances share.
	SourceGlobalRedis
	// SourceLocalMemory is the memory of this process.
	SourceLocalMemory
	// SourceDenialCache is this process's memory of a denial that one of the others gave before: no state
	// was read, and the decision is a denial. See package denialcache.
	SourceDenialCache
)

// Certainty says how exact an evaluated decision is.
type Certainty uint8

// The certainties. The zero value is invalid.
const (
	CertaintyInvalid Certainty = iota
	// CertaintyCertain means that the decision is the algorithm's exact definition.
	CertaintyCertain
	// CertaintyApproximateAlgorithm means that the algorithm is an estimate by design; its bound
	// stands in docs/guarantees.md.
	CertaintyApproximateAlgorithm
)

// FailurePolicy says what a limiter does while it cannot decide.
type FailurePolicy uint8

// The failure policies. The zero value is invalid.
const (
	FailurePolicyInvalid FailurePolicy = iota
	// FailClosed never admits what was not decided. It is the only one in this revision.
	FailClosed
)

// UnavailableCategory says why nothing was decided while it is known that nothing was spent.
type UnavailableCategory uint8

// The reasons for Unavailable. The zero value is invalid.
const (
	UnavailableInvalid UnavailableCategory = iota
	// UnavailableDeadline: less time was left than one command may take, or it ran out before sending.
	UnavailableDeadline
	// UnavailableCanceled: the caller went away before anything was sent.
	UnavailableCanceled
	// UnavailableAdmission: all admission slots are taken.
	UnavailableAdmission
	// UnavailableNotReady: the provider has not yet found its store usable.
	UnavailableNotReady
	// UnavailableClosed: the provider was stopped.
	UnavailableClosed
	// UnavailableQueue: too many commands wait to be sent.
	UnavailableQueue
	// UnavailablePool: no connection came free in time.
	UnavailablePool
	// UnavailableConnection: no connection could be made, or it broke before anything was sent.
	UnavailableConnection
	// UnavailableTLS: the TLS handshake failed.
	UnavailableTLS
	// UnavailableHandshake: the server did not complete the greeting of a new connection.
	UnavailableHandshake
	// UnavailableAuthentication: the server refused the credentials.
	UnavailableAuthentication
	// UnavailablePermission: the server refused the command to this user.
	UnavailablePermission
	// UnavailableServerVersion: the server is older than the programs need.
	UnavailableServerVersion
	// UnavailableLoading: the server is loading its data set.
	UnavailableLoading
	// UnavailableReadOnly: the server is a replica.
	UnavailableReadOnly
	// UnavailableMasterDown: the server is a replica without its master.
	UnavailableMasterDown
	// UnavailableCluster: the cluster is down or the key is elsewhere.
	UnavailableCluster
	// UnavailableOutOfMemory: the server is full and evicts nothing.
	UnavailableOutOfMemory
	// UnavailablePersistence: the server cannot persist and refuses writes.
	UnavailablePersistence
	// UnavailableReplicas: the server has too few replicas and refuses writes.
	UnavailableReplicas
	// UnavailableBusy: the server runs another script for too long.
	UnavailableBusy
	// UnavailableClockUnsafe: the clock went back further than the policy tolerates.
	UnavailableClockUnsafe
	// UnavailableCircuit: the circuit around the store is open.
	UnavailableCircuit
	// UnavailableCapacity: the bound on live keys is reached.
	UnavailableCapacity
)

// IncompatibleCategory says in what way the store and this program do not fit together.
type IncompatibleCategory uint8

// The reasons for Incompatible. The zero value is invalid.
const (
	IncompatibleInvalid IncompatibleCategory = iota
	// IncompatibleState: what is stored is another policy's, malformed, or of another type.
	IncompatibleState
	// IncompatibleProgram: the store does not know the program, or the program refused its arguments.
	IncompatibleProgram
	// IncompatibleReply: the reply is not one that the program can give.
	IncompatibleReply
)

// RequestFault says what is wrong with a request.
type RequestFault uint8

// The faults of a request. The zero value is invalid.
const (
	FaultInvalid RequestFault = iota
	// FaultUnknownPolicy: no policy has this ID.
	FaultUnknownPolicy
	// FaultSubject: the subject digest is missing.
	FaultSubject
	// FaultCost: the cost is below 1 or above the policy's maximum.
	FaultCost
	// FaultEvaluationID: an evaluation ID was given.
	FaultEvaluationID
	// FaultDeadline: neither the request nor its context has a deadline.
	FaultDeadline
)

var (
	algorithmWords     = []string{"INVALID", "fixed-window", "sliding-window-counter", "token-bucket", "gcra", "sliding-window-log"}
	sourceWords        = []string{"INVALID", "GLOBAL_REDIS", "LOCAL_MEMORY", "DENIAL_CACHE"}
	certaintyWords     = []string{"INVALID", "CERTAIN", "APPROXIMATE_ALGORITHM"}
	failurePolicyWords = []string{"INVALID", "FAIL_CLOSED"}
	unavailableWords   = []string{
		"INVALID", "DEADLINE", "CANCELED", "ADMISSION", "NOT_READY", "CLOSED", "QUEUE", "POOL", "CONNECTION", "TLS",
		"HANDSHAKE", "AUTHENTICATION", "PERMISSION", "SERVER_VERSION", "LOADING", "READ_ONLY", "MASTER_DOWN", "CLUSTER",
		"OUT_OF_MEMORY", "PERSISTENCE", "REPLICAS", "BUSY", "CLOCK_UNSAFE", "CIRCUIT", "CAPACITY",
	}
	incompatibleWords = []string{"INVALID", "STATE", "PROGRAM", "REPLY"}
	faultWords        = []string{"INVALID", "UNKNOWN_POLICY", "SUBJECT", "COST", "EVALUATION_ID", "DEADLINE"}
)

func word(words []string, i uint8) string {
	if int(i) >= len(words) {
		return words[0]
	}
	return words[i]
}

// members lists all valid members of a closed set in order.
func members[T ~uint8](words []string) []T {
	all := make([]T, 0, len(words)-1)
	for i := 1; i < len(words); i++ {
		all = append(all, T(i))
	}
	return all
}

// String gives the algorithm's word, as configuration spells it.
func (a Algorithm) String() string { return word(algorithmWords, uint8(a)) }

// String gives the source's word.
func (s Source) String() string { return word(sourceWords, uint8(s)) }

// String gives the certainty's word.
func (c Certainty) String() string { return word(certaintyWords, uint8(c)) }

// String gives the failure policy's word.
func (f FailurePolicy) String() string { return word(failurePolicyWords, uint8(f)) }

// String gives the category's word.
func (c UnavailableCategory) String() string { return word(unavailableWords, uint8(c)) }

// String gives the category's word.
func (c IncompatibleCategory) String() string { return word(incompatibleWords, uint8(c)) }

// String gives the fault's word.
func (f RequestFault) String() string { return word(faultWords, uint8(f)) }

// Algorithms lists all algorithms.
func Algorithms() []Algorithm { return members[Algorithm](algorithmWords) }

// UnavailableCategories lists all reasons for Unavailable.
func UnavailableCategories() []UnavailableCategory {
	return members[UnavailableCategory](unavailableWords)
}

// IncompatibleCategories lists all reasons for Incompatible.
func IncompatibleCategories() []IncompatibleCategory {
	return members[IncompatibleCategory](incompatibleWords)
}
