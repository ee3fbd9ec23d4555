package edge

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func TestAsk(t *testing.T) {
	t.Parallel()
	allowed := ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{Allowed: true, PolicyID: "fixed"}}
	denied := ratelimit.Evaluated{Decision: ratelimit.RateLimitDecision{RetryAfter: 7 * time.Second, PolicyID: "fixed"}}
	someone := RawSubject("someone")
	for name, test := range map[string]struct {
		policy       ratelimit.PolicyID
		subject      Subject
		unidentified error
		outcome      ratelimit.Outcome
		err          error
		want         Report
		asked        int
	}{
		"allowed":       {"fixed", someone, nil, allowed, nil, Report{Verdict: VerdictAllow, Outcome: allowed}, 1},
		"denied":        {"fixed", someone, nil, denied, nil, Report{Verdict: VerdictDeny, Outcome: denied, RetryAfter: 7 * time.Second}, 1},
		"unavailable":   {"fixed", someone, nil, ratelimit.Unavailable{RetryAfter: time.Second}, nil, Report{Verdict: VerdictUnavailable, Outcome: ratelimit.Unavailable{RetryAfter: time.Second}, RetryAfter: time.Second}, 1},
		"indeterminate": {"fixed", someone, nil, ratelimit.Indeterminate{RetryAfter: time.Second}, nil, Report{Verdict: VerdictIndeterminate, Outcome: ratelimit.Indeterminate{RetryAfter: time.Second}, RetryAfter: time.Second}, 1},
		"incompatible":  {"fixed", someone, nil, ratelimit.Incompatible{}, nil, Report{Verdict: VerdictIncompatible, Outcome: ratelimit.Incompatible{}}, 1},
		"no outcome":    {"fixed", someone, nil, nil, nil, Report{Verdict: VerdictRefused, Refusal: RefusalInternal, Reason: "the limiter gave no outcome"}, 1},
		"an error and an allowed outcome": {
			"fixed", someone, nil, allowed, errAny,
			Report{Verdict: VerdictRefused, Refusal: RefusalInternal, Reason: "the limiter failed"},
			1,
		},
		"cost": {
			"fixed", someone, nil, nil, &ratelimit.InvalidRequestError{Fault: ratelimit.FaultCost, Reason: "cost is 9"},
			Report{Verdict: VerdictRefused, Refusal: RefusalCost, Reason: "cost is 9"},
			1,
		},
		"a policy that the limiter does not know": {
			"fixed", someone, nil, nil, &ratelimit.InvalidRequestError{Fault: ratelimit.FaultUnknownPolicy, Reason: "none"},
			Report{Verdict: VerdictRefused, Refusal: RefusalPolicyUnknown, Reason: "none"},
			1,
		},
		"unknown policy": {
			"other", someone, nil, allowed, nil,
			Report{Verdict: VerdictRefused, Refusal: RefusalPolicyUnknown, Reason: "no policy has the ID that was chosen"},
			0,
		},
		"nobody": {
			"fixed",
			Subject{},
			nil, allowed, nil,
			Report{Verdict: VerdictRefused, Refusal: RefusalSubjectMissing, Reason: "the request does not say whom to limit"},
			0,
		},
		"too long": {
			"fixed", RawSubject(strings.Repeat("x", ratelimit.MaxIdentityBytes+1)), nil, allowed, nil,
			Report{Verdict: VerdictRefused, Refusal: RefusalSubjectMalformed, Reason: "the identity is too long"},
			0,
		},
		"a reason of ours": {
			"fixed", someone, Refuse(RefusalSubjectMissing, "no key"), allowed, nil,
			Report{Verdict: VerdictRefused, Refusal: RefusalSubjectMissing, Reason: "no key"},
			0,
		},
		"an error of another's": {
			"fixed", someone, errAny, allowed, nil,
			Report{Verdict: VerdictRefused, Refusal: RefusalSubjectMalformed, Reason: "the request does not say whom to limit in a form that can be taken"},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &port{outcome: test.outcome, err: test.err}
			a := Asker{Limiter: p, Policies: policies(t), Digester: digester(t), Deadline: time.Second}
			got := a.Ask(t.Context(), test.policy, test.subject, test.unidentified, 1)
			test.want.Policy = test.policy
			if got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
			if got.Passes() != (test.want.Verdict == VerdictAllow) {
				t.Errorf("it passes: %v", got.Passes())
			}
			if len(p.asked) != test.asked {
				t.Fatalf("the port was asked %d times, want %d", len(p.asked), test.asked)
			}
			if test.asked == 1 {
				if wait := time.Until(p.asked[0].Deadline); wait > time.Second || p.asked[0].Cost != 1 || p.asked[0].Subject.IsZero() {
					t.Errorf("asked %+v", p.asked[0])
				}
			}
		})
	}
}

func TestAskerCheck(t *testing.T) {
	t.Parallel()
	if got := len(Asker{Deadline: 1500 * time.Microsecond}.Check()); got != 4 {
		t.Errorf("%d faults, want 4", got)
	}
	if faults := (Asker{Limiter: &port{}, Policies: policies(t), Digester: digester(t), Deadline: MaxDeadline}).Check(); len(faults) != 0 {
		t.Errorf("%v", faults)
	}
}

// TestSubjectShowsNothing prints subjects in every way that there is.
func TestSubjectShowsNothing(t *testing.T) {
	t.Parallel()
	digest, err := digester(t).Digest("alice")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Subject{RawSubject("alice"), DigestedSubject(digest)} {
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "s", s, "in", struct{ S Subject }{s})
		shown := fmt.Sprintf("%v %+v %#v %s %q %x %d", s, s, s, s, s, s, s) + fmt.Sprintf("%+v", struct{ S Subject }{s}) + log.String()
		for _, secret := range []string{"alice", digest.String(), fmt.Sprintf("%x", "alice"), fmt.Sprintf("%d", []byte("alice"))} {
			if strings.Contains(shown, secret) {
				t.Errorf("%s is in %s", secret, shown)
			}
		}
	}
}

// TestJoinedSubjectsDiffer holds lists that differ anywhere to give subjects that do.
func TestJoinedSubjectsDiffer(t *testing.T) {
	t.Parallel()
	identity := rapid.OneOf(rapid.StringMatching(`[:#0-9j]{1,4}`), rapid.StringN(1, 5, -1))
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOfN(identity, 1, 3).Draw(t, "a"), rapid.SliceOfN(identity, 1, 3).Draw(t, "b")
		join := func(list []string) Subject {
			var subjects []Subject
			for _, s := range list {
				subjects = append(subjects, RawSubject(s))
			}
			return JoinSubjects(subjects...)
		}
		if same := join(a) == join(b); same != (fmt.Sprintf("%q", a) == fmt.Sprintf("%q", b)) {
			t.Errorf("%q and %q: %v", a, b, same)
		}
	})
	digest, err := digester(t).Digest("alice")
	if err != nil {
		t.Fatal(err)
	}
	if JoinSubjects(DigestedSubject(digest)) == JoinSubjects(RawSubject(digest.String())) {
		t.Error("a digest and its text are one subject")
	}
	if !JoinSubjects(RawSubject("a"), Subject{}).IsZero() {
		t.Error("somebody and nobody together are somebody")
	}
}
