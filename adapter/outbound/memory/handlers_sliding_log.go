package memory

import (
	"errors"
	"fmt"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// metadataScore is the score of the one member that is no admission.
const metadataScore = -1

// errLog is a member that this policy's log cannot hold. It becomes STATE_INCOMPATIBLE.
var errLog = errors.New("memory: a member of the log is malformed")

// rateSlidingLogV1 is rate-sliding-log-v1. Like that, it reads a few members of the set and checks
// those, so it does not build the whole state that shared-contract/algorithm decides over; a test
// holds the two equal.
func rateSlidingLogV1(tx *Tx, keys, args []string) (store.Reply, error) {
	if len(keys) != 1 || len(args) != 7 {
		return rejected(algorithm.StatusInvalid, tx.NowMillis()), nil
	}
	c, ok := readCommon(tx, "1:sl:", args)
	limit, okLimit := parseUint(args[1], 1, algorithm.MaxSlidingLogLimit)
	window, okWindow := parseUint(args[2], 1, algorithm.MaxHorizonMillis)
	cost, okCost := parseUint(args[5], 1, limit)
	if !ok || !okLimit || !okWindow || !okCost {
		return rejected(algorithm.StatusInvalid, tx.NowMillis()), nil
	}
	log := &storedLog{tx: tx, key: keys[0], common: c, limit: limit, window: window}
	d, err := log.decide(cost)
	switch {
	case errors.Is(err, ErrWrongType), errors.Is(err, errLog):
		return rejected(algorithm.StatusStateIncompatible, c.now), nil
	case err != nil:
		return store.Reply{}, err
	}
	if d.Status == algorithm.StatusAllowed {
		err = log.admit(d.EffectiveNowMillis, cost)
	}
	return replyOf(d), err
}

// storedLog is the sorted set of one subject during one run.
type storedLog struct {
	tx     *Tx
	key    string
	common common
	limit  int64
	window int64

	last  int64 // last observed, ms
	total int64 // last cumulative cost, 0 where nothing is live
}

// metadata reads the first member.
func (l *storedLog) metadata(m Member) error {
	rest, ours := strings.CutPrefix(m.Name, l.common.identity+" ")
	first, second, two := strings.Cut(rest, " ")
	last, ok1 := parseUint(first, 0, algorithm.MaxNowMillis)
	total, ok2 := parseUint(second, 1, algorithm.MaxExact-l.limit)
	if !ours || !two || !ok1 || !ok2 || m.Score != metadataScore {
		return errLog
	}
	l.last, l.total = last, total
	return nil
}

// entry reads a member that stands for an admission.
func (l *storedLog) entry(m Member) (algorithm.SlidingLogEntry, error) {
	const digits = 16
	if strings.IndexByte(m.Name, ':') != digits {
		return algorithm.SlidingLogEntry{}, errLog
	}
	cumulative, ok1 := parseUint(m.Name[:digits], 1, l.total)
	cost, ok2 := parseUint(m.Name[digits+1:], 1, l.limit)
	if !ok1 || !ok2 || cost > cumulative || l.total-cumulative+cost > l.limit ||
		m.Score < 0 || m.Score > l.last || m.Score+l.window <= l.last {
		return algorithm.SlidingLogEntry{}, errLog
	}
	return algorithm.SlidingLogEntry{At: m.Score, Cumulative: cumulative, Cost: cost}, nil
}

// decide reads and decides; it writes nothing.
func (l *storedLog) decide(cost int64) (algorithm.Decision, error) {
	now := l.common.now
	d := algorithm.Decision{
		Status: algorithm.StatusAllowed, ServerNowMillis: now, EffectiveNowMillis: now, Limit: l.limit,
		Remaining: l.limit - cost, ResetAtMillis: now + l.window,
	}
	members, err := l.tx.ZRangeByRank(l.key, 0, 1)
	if err != nil || len(members) == 0 {
		return d, err
	}
	if err := l.metadata(members[0]); err != nil {
		return d, err
	}
	if len(members) < 2 {
		return d, errLog
	}
	first, err := l.entry(members[1])
	if err != nil {
		return d, err
	}
	if safeAt := l.last - l.common.clock.MaxRegressionMillis; safeAt > now {
		return algorithm.Decision{
			Status: algorithm.StatusClockUnsafe, ServerNowMillis: now, EffectiveNowMillis: now, Limit: l.limit,
			RetryAfterMillis: safeAt - now, ResetAtMillis: safeAt,
		}, nil
	}
	now = max(now, l.last)
	d.EffectiveNowMillis, d.ResetAtMillis = now, now+l.window
	if l.last+l.window <= now {
		l.total = 0
		return d, nil
	}
	if first.At+l.window <= now {
		if first, err = l.firstLive(now); err != nil {
			return d, err
		}
	}
	d.Remaining = l.limit - (l.total - first.Cumulative + first.Cost)
	if cost <= d.Remaining {
		d.Remaining -= cost
		return d, nil
	}
	at := first.At
	if budget := l.limit - cost; l.total-first.Cumulative > budget {
		if at, err = l.lastToGo(budget); err != nil {
			return d, err
		}
		if at+l.window <= now {
			return d, errLog
		}
	}
	d.Status, d.ResetAtMillis = algorithm.StatusDenied, l.last+l.window
	d.RetryAfterMillis = at + l.window - l.common.now
	return d, nil
}

// firstLive is the oldest entry that counts at a moment at which the last one does.
func (l *storedLog) firstLive(now int64) (algorithm.SlidingLogEntry, error) {
	live, err := l.tx.ZRangeByScore(l.key, now-l.window+1, maxScoreBound, 0, 1)
	if err != nil {
		return algorithm.SlidingLogEntry{}, err
	}
	if len(live) == 0 {
		return algorithm.SlidingLogEntry{}, errLog
	}
	return l.entry(live[0])
}

// lastToGo is the time of the oldest entry after which at most budget was spent, searched from the
// end: it is one of the last budget+1.
func (l *storedLog) lastToGo(budget int64) (int64, error) {
	at := l.last
	for low, high := int64(1), budget+1; low < high; {
		middle := (low + high + 1) / 2
		probed, err := l.tx.ZRangeByRank(l.key, -middle, -middle)
		if err != nil {
			return 0, err
		}
		fits := false
		if len(probed) > 0 && probed[0].Score != metadataScore {
			e, err := l.entry(probed[0])
			if err != nil {
				return 0, err
			}
			if fits = l.total-e.Cumulative <= budget; fits {
				low, at = middle, e.At
			}
		}
		if !fits {
			high = middle - 1
		}
	}
	return at, nil
}

// admit takes the metadata with what is dead, sets the lifetime, and spends last.
func (l *storedLog) admit(now, cost int64) error {
	total := l.total + cost
	if _, err := l.tx.ZRemRangeByScore(l.key, minScoreBound, max(now-l.window, metadataScore)); err != nil {
		return err
	}
	ttl := now + l.window + l.common.clock.GraceMillis - l.common.now
	if l.common.simulated {
		ttl = max(ttl, minSimulatedMillis)
	}
	found := l.tx.PExpire(l.key, ttl)
	if _, err := l.tx.ZAdd(l.key, metadataScore, fmt.Sprintf("%s %d %d", l.common.identity, now, total)); err != nil {
		return err
	}
	if _, err := l.tx.ZAdd(l.key, now, fmt.Sprintf("%016d:%d", total, cost)); err != nil {
		return err
	}
	if !found {
		l.tx.PExpire(l.key, ttl)
	}
	return nil
}
