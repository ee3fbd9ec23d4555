package failopen

import (
	"context"
	"errors"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// Operation is a method of the port.
type Operation uint8

const (
	// OperationInvalid is the invalid zero value.
	OperationInvalid Operation = iota
	// OperationGet is Get.
	OperationGet
	// OperationPut is PutIfAbsent.
	OperationPut
	// OperationReplace is CompareAndReplace.
	OperationReplace
	// OperationDelete is DeleteByToken.
	OperationDelete
)

var operationWords = [...]string{
	OperationInvalid: "invalid", OperationGet: "get", OperationPut: "put", OperationReplace: "replace", OperationDelete: "delete",
}

// String gives the operation's word.
func (o Operation) String() string {
	if int(o) >= len(operationWords) {
		return operationWords[OperationInvalid]
	}
	return operationWords[o]
}

// Failure is one failure that a caller did not see.
type Failure struct {
	Operation Operation
	Certainty store.Certainty
	Code      store.Code
	// Err is the failure itself. Its text holds no key and no value.
	Err error
}

// Cache decorates a cache. Its constructor is New.
type Cache struct {
	cache   cache.CachePort
	observe func(Failure)
}

var _ cache.CachePort = (*Cache)(nil)

// New decorates a cache. observe is called once for each failure that is hidden from the caller, before
// the call returns and in its goroutine, so it must be quick.
func New(decorated cache.CachePort, observe func(Failure)) (*Cache, error) {
	if decorated == nil || observe == nil {
		return nil, errors.New("failopen: a cache and an observer are needed: what is hidden must be told to somebody")
	}
	return &Cache{cache: decorated, observe: observe}, nil
}

// hide tells of a failure and gives it back. It reports false where the error is one that a caller
// must see. An error of a type that the port does not have is uncertain.
func (c *Cache) hide(operation Operation, err error) (Failure, bool) {
	if err == nil || errors.Is(err, cache.ErrNotFound) {
		return Failure{}, false
	}
	failure := Failure{Operation: operation, Certainty: store.Uncertain, Code: store.CodeInvalid, Err: err}
	var typed *store.Error
	if errors.As(err, &typed) {
		if typed.Code == store.CodeInvalidArgument || typed.Code == store.CodeCanceled {
			return Failure{}, false
		}
		failure.Certainty, failure.Code = typed.Certainty, typed.Code
	}
	c.observe(failure)
	return failure, true
}

// effect is that of a write whose failure was hidden.
func (f Failure) effect() cache.Effect {
	switch f.Certainty {
	case store.NotSent, store.Refused:
		return cache.EffectSkipped
	case store.Mismatched:
		// What stands at the key is somebody else's, and was left alone; but a reply out of protocol
		// does not tell what the write did.
		if f.Code == store.CodeWrongType {
			return cache.EffectSkipped
		}
	case store.Uncertain, store.CertaintyInvalid:
	}
	return cache.EffectUnknown
}

// Get is Get of the cache, or ErrNotFound where it is unavailable.
func (c *Cache) Get(ctx context.Context, key string) (cache.Observation, error) {
	observation, err := c.cache.Get(ctx, key)
	if _, hide := c.hide(OperationGet, err); hide {
		return cache.Observation{}, cache.ErrNotFound
	}
	return observation, err
}

// PutIfAbsent is PutIfAbsent of the cache, or EffectSkipped or EffectUnknown where it is unavailable.
func (c *Cache) PutIfAbsent(ctx context.Context, key, value string, ttl time.Duration) (cache.Written, error) {
	written, err := c.cache.PutIfAbsent(ctx, key, value, ttl)
	return c.written(OperationPut, written, err)
}

// CompareAndReplace is CompareAndReplace of the cache, or EffectSkipped or EffectUnknown where it is
// unavailable.
func (c *Cache) CompareAndReplace(ctx context.Context, key string, observed cache.Token, value string, ttl time.Duration) (cache.Written, error) {
	written, err := c.cache.CompareAndReplace(ctx, key, observed, value, ttl)
	return c.written(OperationReplace, written, err)
}

func (c *Cache) written(operation Operation, written cache.Written, err error) (cache.Written, error) {
	failure, hide := c.hide(operation, err)
	if !hide {
		return written, err
	}
	effect := failure.effect()
	if effect == cache.EffectSkipped {
		return cache.Written{Effect: effect}, nil
	}
	return cache.Written{Effect: effect, Token: written.Token}, nil
}

// DeleteByToken is DeleteByToken of the cache, or EffectSkipped or EffectUnknown where it is
// unavailable.
func (c *Cache) DeleteByToken(ctx context.Context, key string, observed cache.Token) (cache.Effect, error) {
	effect, err := c.cache.DeleteByToken(ctx, key, observed)
	failure, hide := c.hide(OperationDelete, err)
	if !hide {
		return effect, err
	}
	return failure.effect(), nil
}
