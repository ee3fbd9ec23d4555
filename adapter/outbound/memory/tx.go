package memory

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// Handler is a program in Go. It gets keys, with the store's prefix before them, and arguments as
// Redis would: texts, integers in decimal. It runs alone on the store, so it is atomic; it must not
// keep tx and must not call the store.
//
// What it writes stays, whatever it returns. An error of a Tx that it returns without having written
// is told as what it is (wrong type, capacity); every other error is uncertain, as on Redis.
type Handler func(tx *Tx, keys, args []string) (store.Reply, error)

// ErrWrongType is Redis's WRONGTYPE: something of another type stands at the key.
var ErrWrongType = errors.New("memory: the key holds a value of another type")

// errCapacity is a new key beyond StoreConfig.MaxKeys.
var errCapacity = errors.New("memory: the bound on live keys is reached")

// Bounds of scores: what is exact in Redis too. As bounds of a range they mean without a bound.
const (
	minScoreBound = math.MinInt64
	maxScoreBound = math.MaxInt64
	maxScore      = 1<<53 - 1
)

// Tx is one run of a program: reads and writes that behave as the Redis commands named beside them.
// All of it happens at one reading of the store's clock.
type Tx struct {
	keys    *keyspace
	now     int64
	written bool
}

// NowMillis is the store's own clock in ms, as TIME shows it.
func (tx *Tx) NowMillis() int64 { return tx.now }

// Type is "none", "string", "hash" or "zset".
func (tx *Tx) Type(key string) string {
	if r := tx.keys.find(key, tx.now); r != nil {
		return kindWords[r.kind]
	}
	return kindWords[kindNone]
}

// Exists reports whether there is such a key.
func (tx *Tx) Exists(key string) bool { return tx.keys.find(key, tx.now) != nil }

// Delete removes keys and gives how many there were. DEL.
func (tx *Tx) Delete(keys ...string) int64 {
	removed := int64(0)
	for _, key := range keys {
		if r := tx.keys.find(key, tx.now); r != nil {
			tx.remove(r)
			removed++
		}
	}
	return removed
}

// PTTL is the remaining lifetime in ms, 0 at its last moment, -1 for a key without one, -2 for no
// key.
func (tx *Tx) PTTL(key string) int64 {
	switch r := tx.keys.find(key, tx.now); {
	case r == nil:
		return -2
	case r.expiresAt == endless:
		return -1
	default:
		return r.expiresAt - tx.now
	}
}

// PExpire gives a key a lifetime of ms and reports whether there is such a key. A lifetime of 0 or
// less removes it. PEXPIRE.
func (tx *Tx) PExpire(key string, ms int64) bool {
	r := tx.keys.find(key, tx.now)
	if r == nil {
		return false
	}
	if ms <= 0 {
		tx.remove(r)
		return true
	}
	tx.written = true
	tx.keys.expire(r, tx.after(ms))
	return true
}

// after is the moment ms from now. The latest is one below endless.
func (tx *Tx) after(ms int64) int64 {
	if ms >= endless-max(tx.now, 0) {
		return endless - 1
	}
	return tx.now + ms
}

func (tx *Tx) remove(r *record) {
	tx.written = true
	tx.keys.remove(r)
}

// GetString gives a string and whether there is one. GET.
func (tx *Tx) GetString(key string) (string, bool, error) {
	r, err := tx.read(key, kindString)
	if r == nil {
		return "", false, err
	}
	return r.text, true, nil
}

// SetString stores a string with a lifetime of ms (1 or more), whatever stood there. SET PX.
func (tx *Tx) SetString(key, value string, ms int64) error {
	if ms < 1 {
		return fmt.Errorf("memory: a lifetime of %d ms", ms)
	}
	r, err := tx.replace(key)
	if err != nil {
		return err
	}
	r.text = value
	tx.keys.expire(r, tx.after(ms))
	return nil
}

// SetStringKeepTTL stores a string, whatever stood there, and leaves the lifetime of the key as it
// is: none for a new key. SET KEEPTTL.
func (tx *Tx) SetStringKeepTTL(key, value string) error {
	r, err := tx.replace(key)
	if err != nil {
		return err
	}
	r.text = value
	return nil
}

// replace gives a string record in the place of what stands at a key, with its lifetime.
func (tx *Tx) replace(key string) (*record, error) {
	r := tx.keys.find(key, tx.now)
	if r == nil {
		return tx.create(key, kindString)
	}
	tx.written = true
	r.kind, r.fields, r.members = kindString, nil, nil
	return r, nil
}

func (tx *Tx) create(key string, k kind) (*record, error) {
	r, ok := tx.keys.create(key, k, tx.now)
	if !ok {
		return nil, errCapacity
	}
	tx.written = true
	return r, nil
}

// read gives the record of one kind at a key, or nil where there is none.
func (tx *Tx) read(key string, k kind) (*record, error) {
	r := tx.keys.find(key, tx.now)
	if r != nil && r.kind != k {
		return nil, ErrWrongType
	}
	return r, nil
}

// HashGet gives fields of a hash in their order, absent ones as store.Nil. HMGET.
func (tx *Tx) HashGet(key string, fields ...string) ([]store.Value, error) {
	r, err := tx.read(key, kindHash)
	if err != nil {
		return nil, err
	}
	values := make([]store.Value, len(fields))
	for i, field := range fields {
		values[i] = store.Nil()
		if r != nil {
			if text, ok := r.fields[field]; ok {
				values[i] = store.Text(text)
			}
		}
	}
	return values, nil
}

// HashGetAll gives a copy of a hash, empty where there is none. HGETALL.
func (tx *Tx) HashGetAll(key string) (map[string]string, error) {
	r, err := tx.read(key, kindHash)
	if err != nil {
		return nil, err
	}
	all := make(map[string]string)
	if r != nil {
		for field, value := range r.fields {
			all[field] = value
		}
	}
	return all, nil
}

// HashSet sets fields of a hash, given as field, value, field, value. A new hash has no lifetime. HSET.
func (tx *Tx) HashSet(key string, pairs ...string) error {
	if len(pairs) == 0 || len(pairs)%2 != 0 {
		return errors.New("memory: HashSet wants pairs of field and value")
	}
	r, err := tx.read(key, kindHash)
	if err != nil {
		return err
	}
	if r == nil {
		if r, err = tx.create(key, kindHash); err != nil {
			return err
		}
		r.fields = make(map[string]string, len(pairs)/2)
	}
	tx.written = true
	field := ""
	for i, text := range pairs {
		if i%2 == 0 {
			field = text
		} else {
			r.fields[field] = text
		}
	}
	return nil
}

// HashDelete removes fields and gives how many there were; a hash without fields is gone. HDEL.
func (tx *Tx) HashDelete(key string, fields ...string) (int64, error) {
	r, err := tx.read(key, kindHash)
	if r == nil {
		return 0, err
	}
	removed := int64(0)
	for _, field := range fields {
		if _, ok := r.fields[field]; ok {
			tx.written = true
			delete(r.fields, field)
			removed++
		}
	}
	if len(r.fields) == 0 {
		tx.remove(r)
	}
	return removed, nil
}

// ZAdd adds a member to a sorted set, or moves it, and reports whether it is new. A new set has no
// lifetime. Scores are -(2^53-1)..2^53-1. ZADD.
func (tx *Tx) ZAdd(key string, score int64, member string) (bool, error) {
	if score < -maxScore || score > maxScore {
		return false, fmt.Errorf("memory: a score of %d", score)
	}
	r, err := tx.read(key, kindSortedSet)
	if err != nil {
		return false, err
	}
	if r == nil {
		if r, err = tx.create(key, kindSortedSet); err != nil {
			return false, err
		}
		r.members = newSortedSet()
	}
	tx.written = true
	return r.members.set(Member{Score: score, Name: member}), nil
}

// ZRem removes members and gives how many there were; a set without members is gone. ZREM.
func (tx *Tx) ZRem(key string, members ...string) (int64, error) {
	r, err := tx.read(key, kindSortedSet)
	if r == nil {
		return 0, err
	}
	removed := int64(0)
	for _, name := range members {
		if score, ok := r.members.scores[name]; ok {
			tx.written = true
			r.members.drop(Member{Score: score, Name: name})
			removed++
		}
	}
	if len(r.members.sorted) == 0 {
		tx.remove(r)
	}
	return removed, nil
}

// ZRemRangeByScore removes the members with a score of low..high and gives how many there were; a
// set without members is gone. math.MinInt64 and math.MaxInt64 mean -inf and +inf. ZREMRANGEBYSCORE.
func (tx *Tx) ZRemRangeByScore(key string, low, high int64) (int64, error) {
	r, err := tx.read(key, kindSortedSet)
	if r == nil {
		return 0, err
	}
	from, to := r.members.between(low, high)
	if from == to {
		return 0, nil
	}
	tx.written = true
	r.members.cut(from, to)
	if len(r.members.sorted) == 0 {
		tx.remove(r)
	}
	return int64(to - from), nil
}

// ZRangeByRank gives members by rank, start and stop included, from the end where negative. ZRANGE
// WITHSCORES.
func (tx *Tx) ZRangeByRank(key string, start, stop int64) ([]Member, error) {
	r, err := tx.read(key, kindSortedSet)
	if r == nil {
		return nil, err
	}
	from, to := r.members.ranks(start, stop)
	return slices.Clone(r.members.sorted[from:to]), nil
}

// ZRangeByScore gives the members with a score of low..high, after the first offset of them, at most
// count, or all where count is negative. ZRANGE BYSCORE LIMIT WITHSCORES.
func (tx *Tx) ZRangeByScore(key string, low, high, offset, count int64) ([]Member, error) {
	r, err := tx.read(key, kindSortedSet)
	if r == nil {
		return nil, err
	}
	from, to := r.members.between(low, high)
	if offset < 0 || offset >= int64(to-from) {
		return nil, nil
	}
	from += int(offset)
	if count >= 0 && count < int64(to-from) {
		to = from + int(count)
	}
	return slices.Clone(r.members.sorted[from:to]), nil
}

// ZCount is the number of members with a score of low..high. ZCOUNT.
func (tx *Tx) ZCount(key string, low, high int64) (int64, error) {
	r, err := tx.read(key, kindSortedSet)
	if r == nil {
		return 0, err
	}
	from, to := r.members.between(low, high)
	return int64(to - from), nil
}

// ZCard is the number of members. ZCARD.
func (tx *Tx) ZCard(key string) (int64, error) {
	r, err := tx.read(key, kindSortedSet)
	if r == nil {
		return 0, err
	}
	return int64(len(r.members.sorted)), nil
}

// ZScore gives a member's score and whether there is such a member. ZSCORE.
func (tx *Tx) ZScore(key, member string) (int64, bool, error) {
	r, err := tx.read(key, kindSortedSet)
	if r == nil {
		return 0, false, err
	}
	score, ok := r.members.scores[member]
	return score, ok, nil
}
