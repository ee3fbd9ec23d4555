package ratelimit

import (
	"fmt"
	"regexp"
	"testing"
)

// Every closed set: as many words as members, each unique and in the set's form, and INVALID for the
// zero value and for whatever is outside.
func TestClosedSets(t *testing.T) {
	t.Parallel()
	upper, lower := regexp.MustCompile(`^[A-Z][A-Z_]*[A-Z]$`), regexp.MustCompile(`^[a-z][a-z-]*[a-z]$`)
	for name, set := range map[string]struct {
		last uint8
		form *regexp.Regexp
		word func(uint8) fmt.Stringer
	}{
		"algorithm":    {uint8(AlgorithmSlidingWindowLog), lower, func(i uint8) fmt.Stringer { return Algorithm(i) }},
		"source":       {uint8(SourceDenialCache), upper, func(i uint8) fmt.Stringer { return Source(i) }},
		"certainty":    {uint8(CertaintyApproximateAlgorithm), upper, func(i uint8) fmt.Stringer { return Certainty(i) }},
		"failure":      {uint8(FailClosed), upper, func(i uint8) fmt.Stringer { return FailurePolicy(i) }},
		"unavailable":  {uint8(UnavailableCapacity), upper, func(i uint8) fmt.Stringer { return UnavailableCategory(i) }},
		"incompatible": {uint8(IncompatibleReply), upper, func(i uint8) fmt.Stringer { return IncompatibleCategory(i) }},
		"fault":        {uint8(FaultDeadline), upper, func(i uint8) fmt.Stringer { return RequestFault(i) }},
	} {
		seen := map[string]uint8{}
		for i := uint8(1); i <= set.last; i++ {
			word := set.word(i).String()
			if other, twice := seen[word]; twice || word == "INVALID" || !set.form.MatchString(word) {
				t.Errorf("%s %d is %q (also %d)", name, i, word, other)
			}
			seen[word] = i
		}
		for _, i := range []uint8{0, set.last + 1, 255} {
			if word := set.word(i).String(); word != "INVALID" {
				t.Errorf("%s %d is %q", name, i, word)
			}
		}
	}
}

// The words are public: logs, metrics and the JSON API show them.
func TestWordsAreStable(t *testing.T) {
	t.Parallel()
	for want, member := range map[string]fmt.Stringer{
		"fixed-window": AlgorithmFixedWindow, "sliding-window-counter": AlgorithmSlidingWindowCounter, "token-bucket": AlgorithmTokenBucket,
		"gcra": AlgorithmGCRA, "sliding-window-log": AlgorithmSlidingWindowLog,
		"GLOBAL_REDIS": SourceGlobalRedis, "LOCAL_MEMORY": SourceLocalMemory, "DENIAL_CACHE": SourceDenialCache,
		"CERTAIN": CertaintyCertain, "APPROXIMATE_ALGORITHM": CertaintyApproximateAlgorithm, "FAIL_CLOSED": FailClosed,
		"DEADLINE": UnavailableDeadline, "CANCELED": UnavailableCanceled, "ADMISSION": UnavailableAdmission,
		"NOT_READY": UnavailableNotReady, "CLOSED": UnavailableClosed, "QUEUE": UnavailableQueue, "POOL": UnavailablePool,
		"CONNECTION": UnavailableConnection, "TLS": UnavailableTLS, "HANDSHAKE": UnavailableHandshake,
		"AUTHENTICATION": UnavailableAuthentication, "PERMISSION": UnavailablePermission,
		"SERVER_VERSION": UnavailableServerVersion, "LOADING": UnavailableLoading, "READ_ONLY": UnavailableReadOnly,
		"MASTER_DOWN": UnavailableMasterDown, "CLUSTER": UnavailableCluster, "OUT_OF_MEMORY": UnavailableOutOfMemory,
		"PERSISTENCE": UnavailablePersistence, "REPLICAS": UnavailableReplicas, "BUSY": UnavailableBusy,
		"CLOCK_UNSAFE": UnavailableClockUnsafe, "CIRCUIT": UnavailableCircuit, "CAPACITY": UnavailableCapacity,
		"STATE": IncompatibleState, "PROGRAM": IncompatibleProgram, "REPLY": IncompatibleReply,
		"UNKNOWN_POLICY": FaultUnknownPolicy, "SUBJECT": FaultSubject, "COST": FaultCost, "EVALUATION_ID": FaultEvaluationID,
	} {
		if got := member.String(); got != want {
			t.Errorf("%T is %q, want %q", member, got, want)
		}
	}
	if FaultDeadline.String() != "DEADLINE" {
		t.Errorf("FaultDeadline is %q", FaultDeadline)
	}
}

func TestListsOfMembers(t *testing.T) {
	t.Parallel()
	if got := Algorithms(); len(got) != int(AlgorithmSlidingWindowLog) || got[0] != AlgorithmFixedWindow || got[len(got)-1] != AlgorithmSlidingWindowLog {
		t.Errorf("algorithms %v", got)
	}
	if got := UnavailableCategories(); len(got) != int(UnavailableCapacity) || got[0] != UnavailableDeadline || got[len(got)-1] != UnavailableCapacity {
		t.Errorf("unavailable %v", got)
	}
	if got := IncompatibleCategories(); len(got) != int(IncompatibleReply) || got[0] != IncompatibleState || got[len(got)-1] != IncompatibleReply {
		t.Errorf("incompatible %v", got)
	}
}
