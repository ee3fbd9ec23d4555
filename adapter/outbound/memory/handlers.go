package memory

import (
	"math"
	"strconv"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// registration is a program with its handler.
type registration struct {
	program *store.Program
	handler Handler
}

// builtin lists the handlers of the programs of shared-contract/store. Each does what the Lua of the
// same ID does, to the last character of its reply and of what it stores.
func builtin() []registration {
	return []registration{
		{store.RateFixedWindowV1, rateFixedWindowV1},
		{store.RateSlidingCounterV1, rateSlidingCounterV1},
		{store.RateTokenBucketV1, rateTokenBucketV1},
		{store.RateGCRAV1, rateGCRAV1},
		{store.RateSlidingLogV1, rateSlidingLogV1},
		{store.BreakerAcquireV1, breakerAcquireV1},
		{store.BreakerRecordV1, breakerRecordV1},
		{store.BreakerReadV1, breakerReadV1},
		{store.StoreIncrByV1, storeIncrByV1},
		{store.CacheReplaceV1, cacheReplaceV1},
		{store.CacheDeleteV1, cacheDeleteV1},
	}
}

// parseUint reads a decimal text of 1..16 digits within low..high, as uint of the Lua prelude does.
func parseUint(text string, low, high int64) (int64, bool) {
	if len(text) == 0 || len(text) > 16 {
		return 0, false
	}
	var n int64
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(text[i]-'0')
	}
	return n, n >= low && n <= high
}

// decimal is how programs write an integer.
func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// allAbsent reports whether no field was there.
func allAbsent(fields []store.Value) bool {
	for i := range fields {
		if fields[i].Kind != store.ValueNil {
			return false
		}
	}
	return true
}

// replyOf gives the seven fields of a rate program.
func replyOf(d algorithm.Decision) store.Reply {
	var r store.Reply
	r.Append(store.Text(d.Status.String()))
	for _, n := range [...]int64{
		d.ServerNowMillis, d.EffectiveNowMillis, d.Limit, d.Remaining, d.RetryAfterMillis, d.ResetAtMillis,
	} {
		r.Append(store.Integer(n))
	}
	return r
}

func rejected(status algorithm.Status, now int64) store.Reply {
	return replyOf(algorithm.Rejected(status, now))
}

// common is what every rate program has among its arguments.
type common struct {
	identity  string // as it is stored
	clock     algorithm.Clock
	now       int64 // the clock that decides
	simulated bool
}

// readCommon reads identity, grace, max regression and clock of the arguments of a program, whose last
// four are grace, max regression, cost and clock. It does not judge the cost.
func readCommon(tx *Tx, tag string, args []string) (common, bool) {
	n := len(args)
	grace, ok1 := parseUint(args[n-4], 0, algorithm.MaxHorizonMillis)
	regression, ok2 := parseUint(args[n-3], 0, algorithm.MaxRegressionMillis)
	clock, ok3 := parseUint(args[n-1], 0, algorithm.MaxNowMillis)
	c := common{
		identity: args[0], clock: algorithm.Clock{GraceMillis: grace, MaxRegressionMillis: regression},
		now: tx.NowMillis(),
	}
	if !ok1 || !ok2 || !ok3 || len(c.identity) > 64 || !strings.HasPrefix(c.identity, tag) || c.now > algorithm.MaxNowMillis {
		return c, false
	}
	if clock > 0 {
		c.now, c.simulated = clock, true
		c.identity += ":sim"
	}
	return c, true
}

// minSimulatedMillis is the least lifetime of a state under a caller's clock: 24 h.
const minSimulatedMillis = 86_400_000

// create stores a state with the lifetime that it has from now on: up to expiresAt on the deciding
// clock.
func (c *common) create(tx *Tx, key string, expiresAt int64, pairs ...string) error {
	ttl := expiresAt - c.now
	if c.simulated {
		ttl = max(ttl, minSimulatedMillis)
	}
	found := tx.PExpire(key, ttl)
	if err := tx.HashSet(key, pairs...); err != nil {
		return err
	}
	if !found {
		tx.PExpire(key, ttl)
	}
	return nil
}

// product multiplies two integers that are not negative and stops at the largest int64.
func product(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
