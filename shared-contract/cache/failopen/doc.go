// Package failopen is the decorator under which a cache that is unavailable is as good as an empty
// one: reads miss, writes do nothing and say so.
//
// It is for caches alone: what is not in a cache is fetched from where it comes from. The rate limiter
// fails closed and uses neither this package nor the port that it decorates; a test of the
// composition holds it to that.
//
// # Errors
//
// A decorated cache fails with ErrNotFound; with store.CodeInvalidArgument, which is the caller's
// mistake and would hide behind a miss; and with store.CodeCanceled, which says that the caller went
// away and nothing about the cache. Everything else, a deadline that was over included, is told to the
// observer and turned into a miss, EffectSkipped, or, where the write may have taken effect,
// EffectUnknown.
//
// # Concurrency
//
// A Cache is safe for concurrent use if what it decorates and its observer are.
package failopen
