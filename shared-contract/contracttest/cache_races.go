package contracttest

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
)

func cacheRaceTests() []cacheTest {
	return []cacheTest{
		{name: "OneReplacementWins", run: cacheOneReplacementWins},
		{name: "OnePutWins", run: cacheOnePutWins},
		{name: "OneRemovalWins", run: cacheOneRemovalWins},
		{name: "NoUpdateIsLost", run: cacheNoUpdateIsLost},
	}
}

// racers is how many goroutines meet at one key.
const racers = 100

// instances gives the caches that racers use by turns: two where entries are shared.
func (h *cacheHarness) instances() []cache.CachePort {
	all := []cache.CachePort{h.c}
	if h.b.Shares {
		all = append(all, h.b.New(h, cacheName, cacheLimits()))
	}
	return all
}

// race runs f in all racers at once and collects what they give.
func race[T any](h *cacheHarness, f func(racer int, c cache.CachePort) (T, error)) []T {
	h.Helper()
	instances := h.instances()
	results, faults := make([]T, racers), make([]error, racers)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range racers {
		all.Go(func() {
			<-start
			results[i], faults[i] = f(i, instances[i%len(instances)])
		})
	}
	close(start)
	all.Wait()
	for i, err := range faults {
		if err != nil {
			h.Fatalf("racer %d: %v", i, err)
		}
	}
	return results
}

// winner requires that exactly one write was applied and all others had the other effect.
func (h *cacheHarness) winner(what string, results []cache.Written, other cache.Effect) (racer int) {
	h.Helper()
	racer = -1
	for i, written := range results {
		h.wellFormed(written)
		switch {
		case written.Effect == cache.EffectApplied && racer < 0:
			racer = i
		case written.Effect != other:
			h.Errorf("%s: racer %d: %v beside racer %d", what, i, written.Effect, racer)
		}
	}
	if racer < 0 {
		h.Fatalf("%s: nobody won", what)
	}
	return racer
}

// cacheOneReplacementWins: of all who hold one token, one replaces; round after round, each with the
// token of the winner before.
func cacheOneReplacementWins(h *cacheHarness) {
	token := h.put("k", "start", time.Hour)
	for round := range 5 {
		results := race(h, func(racer int, c cache.CachePort) (cache.Written, error) {
			return c.CompareAndReplace(h.ctx(), "k", token, fmt.Sprint(round, "/", racer), time.Hour)
		})
		won := h.winner(fmt.Sprint("round ", round), results, cache.EffectChanged)
		h.stands("k", fmt.Sprint(round, "/", won), results[won].Token)
		h.notReplaced("k", token, cache.EffectChanged)
		token = results[won].Token
	}
}

func cacheOnePutWins(h *cacheHarness) {
	results := race(h, func(racer int, c cache.CachePort) (cache.Written, error) {
		return c.PutIfAbsent(h.ctx(), "k", fmt.Sprint(racer), time.Hour)
	})
	won := h.winner("put", results, cache.EffectExists)
	h.stands("k", fmt.Sprint(won), results[won].Token)
}

func cacheOneRemovalWins(h *cacheHarness) {
	token := h.put("k", "v", time.Hour)
	removed := 0
	for _, effect := range race(h, func(_ int, c cache.CachePort) (cache.Effect, error) {
		return c.DeleteByToken(h.ctx(), "k", token)
	}) {
		switch effect {
		case cache.EffectApplied:
			removed++
		case cache.EffectAbsent:
		case cache.EffectInvalid, cache.EffectExists, cache.EffectChanged, cache.EffectSkipped, cache.EffectUnknown:
			h.Errorf("a removal is %v", effect)
		}
	}
	if removed != 1 {
		h.Errorf("%d removed the one version", removed)
	}
	h.missing("k")
}

// cacheNoUpdateIsLost: read, add one, replace what was read, until it takes effect. Every addition is in
// the sum.
func cacheNoUpdateIsLost(h *cacheHarness) {
	const each = 3
	h.put("sum", "0", time.Hour)
	race(h, func(_ int, c cache.CachePort) (struct{}, error) {
		for done := 0; done < each; {
			seen, err := c.Get(h.ctx(), "sum")
			if err != nil {
				return struct{}{}, err
			}
			n, err := strconv.Atoi(seen.Value)
			if err != nil {
				return struct{}{}, err
			}
			written, err := c.CompareAndReplace(h.ctx(), "sum", seen.Token, strconv.Itoa(n+1), time.Hour)
			if err != nil {
				return struct{}{}, err
			}
			if written.Effect == cache.EffectApplied {
				done++
			}
		}
		return struct{}{}, nil
	})
	got, err := h.c.Get(h.ctx(), "sum")
	if err != nil || got.Value != strconv.Itoa(racers*each) {
		h.Errorf("the sum is %q, %v, want %d", got.Value, err, racers*each)
	}
}
