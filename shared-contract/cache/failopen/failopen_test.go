package failopen_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/cache/failopen"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// answering is a cache that gives the same answer to everything.
type answering struct {
	written cache.Written
	effect  cache.Effect
	seen    cache.Observation
	err     error
}

func (a answering) Get(context.Context, string) (cache.Observation, error) { return a.seen, a.err }

func (a answering) PutIfAbsent(context.Context, string, string, time.Duration) (cache.Written, error) {
	return a.written, a.err
}

func (a answering) CompareAndReplace(context.Context, string, cache.Token, string, time.Duration) (cache.Written, error) {
	return a.written, a.err
}

func (a answering) DeleteByToken(context.Context, string, cache.Token) (cache.Effect, error) {
	return a.effect, a.err
}

const token = cache.Token("AAAAAAAAAAAAAAAAAAAAAA")

func failure(certainty store.Certainty, code store.Code) error {
	return &store.Error{Op: "x", Certainty: certainty, Code: code}
}

// TestHides: each kind of failure becomes a miss and an effect that says no more than is known, and is
// told once.
func TestHides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		told   failopen.Failure // without operation and error
		effect cache.Effect
	}{
		{failure(store.NotSent, store.CodeConnect), failopen.Failure{Certainty: store.NotSent, Code: store.CodeConnect}, cache.EffectSkipped},
		{failure(store.NotSent, store.CodeNotReady), failopen.Failure{Certainty: store.NotSent, Code: store.CodeNotReady}, cache.EffectSkipped},
		{failure(store.NotSent, store.CodeDeadline), failopen.Failure{Certainty: store.NotSent, Code: store.CodeDeadline}, cache.EffectSkipped},
		{failure(store.NotSent, store.CodeClosed), failopen.Failure{Certainty: store.NotSent, Code: store.CodeClosed}, cache.EffectSkipped},
		{failure(store.Refused, store.CodeReadOnly), failopen.Failure{Certainty: store.Refused, Code: store.CodeReadOnly}, cache.EffectSkipped},
		{failure(store.Refused, store.CodeOutOfMemory), failopen.Failure{Certainty: store.Refused, Code: store.CodeOutOfMemory}, cache.EffectSkipped},
		{failure(store.Uncertain, store.CodeDeadline), failopen.Failure{Certainty: store.Uncertain, Code: store.CodeDeadline}, cache.EffectUnknown},
		{failure(store.Uncertain, store.CodeConnectionLost), failopen.Failure{Certainty: store.Uncertain, Code: store.CodeConnectionLost}, cache.EffectUnknown},
		{failure(store.Mismatched, store.CodeWrongType), failopen.Failure{Certainty: store.Mismatched, Code: store.CodeWrongType}, cache.EffectSkipped},
		{failure(store.Mismatched, store.CodeReply), failopen.Failure{Certainty: store.Mismatched, Code: store.CodeReply}, cache.EffectUnknown},
		{failure(store.CertaintyInvalid, store.CodeInvalid), failopen.Failure{}, cache.EffectUnknown},
		{fmt.Errorf("wrapped: %w", failure(store.Refused, store.CodeBusy)), failopen.Failure{Certainty: store.Refused, Code: store.CodeBusy}, cache.EffectSkipped},
		{errors.New("of no type that the port has"), failopen.Failure{Certainty: store.Uncertain}, cache.EffectUnknown},
	} {
		var told []failopen.Failure
		decorated, err := failopen.New(
			answering{err: c.err, written: cache.Written{Token: token}, seen: cache.Observation{Value: "v", Token: token}},
			func(f failopen.Failure) { told = append(told, f) })
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		want := cache.Written{Effect: c.effect}
		if c.effect == cache.EffectUnknown {
			want.Token = token // The caller can look whether the write took effect.
		}
		if seen, err := decorated.Get(ctx, "k"); err != cache.ErrNotFound || seen != (cache.Observation{}) { //nolint:errorlint // It must come bare.
			t.Errorf("%v: get gives %+v, %v", c.err, seen, err)
		}
		if written, err := decorated.PutIfAbsent(ctx, "k", "v", time.Second); err != nil || written != want {
			t.Errorf("%v: put gives %+v, %v, want %+v", c.err, written, err, want)
		}
		if written, err := decorated.CompareAndReplace(ctx, "k", token, "v", time.Second); err != nil || written != want {
			t.Errorf("%v: replace gives %+v, %v, want %+v", c.err, written, err, want)
		}
		if effect, err := decorated.DeleteByToken(ctx, "k", token); err != nil || effect != c.effect {
			t.Errorf("%v: delete gives %v, %v, want %v", c.err, effect, err, c.effect)
		}
		operations := []failopen.Operation{failopen.OperationGet, failopen.OperationPut, failopen.OperationReplace, failopen.OperationDelete}
		if len(told) != len(operations) {
			t.Fatalf("%v: told %v", c.err, told)
		}
		for i, f := range told {
			if f.Operation != operations[i] || f.Certainty != c.told.Certainty || f.Code != c.told.Code || !errors.Is(f.Err, c.err) {
				t.Errorf("%v: told %+v, want %v and %+v", c.err, f, operations[i], c.told)
			}
		}
	}
}

// TestPassesOn: answers, misses and what is the caller's own are passed on, and nothing is told.
func TestPassesOn(t *testing.T) {
	t.Parallel()
	for _, inner := range []answering{
		{written: cache.Written{Effect: cache.EffectApplied, Token: token}, effect: cache.EffectApplied, seen: cache.Observation{Value: "v", Token: token}},
		{written: cache.Written{Effect: cache.EffectChanged}, effect: cache.EffectAbsent, err: nil},
		{err: cache.ErrNotFound},
		{err: failure(store.NotSent, store.CodeInvalidArgument)},
		{err: failure(store.NotSent, store.CodeCanceled)},
	} {
		decorated, err := failopen.New(inner, func(f failopen.Failure) { t.Errorf("told %+v", f) })
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		same := func(what string, got, want any, err error) {
			t.Helper()
			if got != want || !errors.Is(err, inner.err) {
				t.Errorf("%s gives %+v, %v, want %+v, %v", what, got, err, want, inner.err)
			}
		}
		seen, err := decorated.Get(ctx, "k")
		same("get", seen, inner.seen, err)
		written, err := decorated.PutIfAbsent(ctx, "k", "v", time.Second)
		same("put", written, inner.written, err)
		written, err = decorated.CompareAndReplace(ctx, "k", token, "v", time.Second)
		same("replace", written, inner.written, err)
		effect, err := decorated.DeleteByToken(ctx, "k", token)
		same("delete", effect, inner.effect, err)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := failopen.New(nil, func(failopen.Failure) {}); err == nil {
		t.Error("no cache is taken")
	}
	if _, err := failopen.New(answering{}, nil); err == nil {
		t.Error("no observer is taken")
	}
}

func TestOperationWords(t *testing.T) {
	t.Parallel()
	want := []string{"invalid", "get", "put", "replace", "delete"}
	for i, word := range want {
		if got := failopen.Operation(i).String(); got != word {
			t.Errorf("operation %d is %s, want %s", i, got, word)
		}
	}
	if got := failopen.Operation(len(want)).String(); got != "invalid" {
		t.Errorf("an operation that does not exist is %s", got)
	}
}
