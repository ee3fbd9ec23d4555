package ratelimit

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestPolicySet(t *testing.T) {
	t.Parallel()
	config := func(id PolicyID) RateLimitPolicyConfig {
		c := goodConfig()
		c.ID = id
		return c
	}
	b, a, c := mustPolicy(t, config("b")), mustPolicy(t, config("a")), mustPolicy(t, config("c"))
	set, err := NewPolicySet(b, a, c)
	if err != nil {
		t.Fatal(err)
	}
	if all := set.All(); len(all) != 3 || all[0] != a || all[1] != b || all[2] != c {
		t.Errorf("%v", all)
	}
	if set.Get("a") != a || set.Get("d") != nil || set.Get("") != nil {
		t.Error("Get gives another policy")
	}
	second := config("a")
	second.Revision++
	for name, policies := range map[string][]*RateLimitPolicy{
		"none": nil, "nil": {a, nil}, "zero": {&RateLimitPolicy{}}, "twice": {a, b, a}, "two revisions": {a, mustPolicy(t, second)},
	} {
		if set, err := NewPolicySet(policies...); err == nil || set != nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	p := mustPolicy(t, goodConfig())
	set, err := NewPolicySet(p)
	if err != nil {
		t.Fatal(err)
	}
	subject, err := ParseSubjectDigest(strings.Repeat("5a", 32))
	if err != nil {
		t.Fatal(err)
	}
	early, late := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	good := RateLimitRequest{PolicyID: "api", Subject: subject, Cost: 1, Deadline: early}
	for name, c := range map[string]struct {
		edit func(*RateLimitRequest)
		want RequestFault
	}{
		"good": {func(*RateLimitRequest) {}, FaultInvalid}, "greatest cost": {func(r *RateLimitRequest) { r.Cost = 5 }, FaultInvalid},
		"unknown policy": {func(r *RateLimitRequest) { r.PolicyID = "apo" }, FaultUnknownPolicy},
		"no policy":      {func(r *RateLimitRequest) { r.PolicyID = "" }, FaultUnknownPolicy},
		"nothing":        {func(r *RateLimitRequest) { *r = RateLimitRequest{} }, FaultUnknownPolicy},
		"evaluation ID":  {func(r *RateLimitRequest) { r.EvaluationID = " " }, FaultEvaluationID},
		"no subject":     {func(r *RateLimitRequest) { r.Subject = SubjectDigest{} }, FaultSubject},
		"cost 0":         {func(r *RateLimitRequest) { r.Cost = 0 }, FaultCost},
		"cost -1":        {func(r *RateLimitRequest) { r.Cost = -1 }, FaultCost},
		"least cost":     {func(r *RateLimitRequest) { r.Cost = math.MinInt64 }, FaultCost},
		"cost above":     {func(r *RateLimitRequest) { r.Cost = 6 }, FaultCost},
		"no deadline":    {func(r *RateLimitRequest) { r.Deadline = time.Time{} }, FaultDeadline},
	} {
		request := good
		c.edit(&request)
		policy, deadline, err := set.Admit(t.Context(), request)
		if c.want == FaultInvalid {
			if policy != p || !deadline.Equal(early) || err != nil {
				t.Errorf("%s: %v, %v, %v", name, policy, deadline, err)
			}
			continue
		}
		var invalid *InvalidRequestError
		if policy != nil || !deadline.IsZero() || !errors.As(err, &invalid) || invalid.Fault != c.want {
			t.Errorf("%s: %v, %v, %v, want %v", name, policy, deadline, err, c.want)
			continue
		}
		if text := err.Error(); invalid.Reason == "" || !strings.Contains(text, c.want.String()) || strings.Contains(text, subject.String()) {
			t.Errorf("%s: %q", name, text)
		}
	}
	for name, c := range map[string]struct {
		request, context, want time.Time
	}{
		"the request's alone": {early, time.Time{}, early}, "the context's alone": {time.Time{}, late, late},
		"the request's is earlier": {early, late, early}, "the context's is earlier": {late, early, early}, "both": {early, early, early},
	} {
		ctx := t.Context()
		if !c.context.IsZero() {
			bounded, stop := context.WithDeadline(ctx, c.context)
			t.Cleanup(stop)
			ctx = bounded
		}
		request := good
		request.Deadline = c.request
		if _, deadline, err := set.Admit(ctx, request); err != nil || !deadline.Equal(c.want) {
			t.Errorf("%s: %v, %v", name, deadline, err)
		}
	}
}
