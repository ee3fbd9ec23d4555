package memory

import (
	"errors"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/algorithm"
	"github.com/edgelimit/edgelimit/shared-contract/cache"
	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// What the cache programs answer.
const (
	cacheApplied      = "APPLIED"
	cacheChanged      = "CHANGED"
	cacheAbsent       = "ABSENT"
	cacheIncompatible = "STATE_INCOMPATIBLE"
	cacheInvalid      = "INVALID"
)

// An entry is schema, token and value: 1:<22 characters>:<value>.
const (
	entrySchema = "1:"
	entryHeader = len(entrySchema) + cache.TokenBytes + len(":")
)

// entryToken gives the token of an entry, and false for a string of another form.
func entryToken(entry string) (string, bool) {
	if len(entry) < entryHeader || !strings.HasPrefix(entry, entrySchema) || entry[entryHeader-1] != ':' {
		return "", false
	}
	token := entry[len(entrySchema) : entryHeader-1]
	return token, cache.CheckToken(cache.Token(token)) == nil
}

// observe judges what stands at a key against the version that was observed. The word is empty where
// it is that version.
func observe(tx *Tx, key, observed string) (string, error) {
	stored, found, err := tx.GetString(key)
	switch {
	case errors.Is(err, ErrWrongType):
		return cacheIncompatible, nil
	case err != nil:
		return "", err
	case !found:
		return cacheAbsent, nil
	}
	switch token, ok := entryToken(stored); {
	case !ok:
		return cacheIncompatible, nil
	case token != observed:
		return cacheChanged, nil
	}
	return "", nil
}

func cacheReply(word string, err error) (store.Reply, error) {
	if err != nil {
		return store.Reply{}, err
	}
	return store.NewReply(store.Text(word))
}

// cacheReplaceV1 is cache-replace-v1.
func cacheReplaceV1(tx *Tx, keys, args []string) (store.Reply, error) {
	if len(keys) != 1 || len(args) != 3 {
		return cacheReply(cacheInvalid, nil)
	}
	key, observed, entry := keys[0], args[0], args[1]
	_, whole := entryToken(entry)
	ttl, ok := canonicalInteger(args[2], algorithm.MaxHorizonMillis)
	if cache.CheckToken(cache.Token(observed)) != nil || !whole || len(entry) > store.MaxTextBytes || !ok || ttl < 1 {
		return cacheReply(cacheInvalid, nil)
	}
	word, err := observe(tx, key, observed)
	if err != nil || word != "" {
		return cacheReply(word, err)
	}
	return cacheReply(cacheApplied, tx.SetString(key, entry, ttl))
}

// cacheDeleteV1 is cache-delete-v1.
func cacheDeleteV1(tx *Tx, keys, args []string) (store.Reply, error) {
	if len(keys) != 1 || len(args) != 1 {
		return cacheReply(cacheInvalid, nil)
	}
	key, observed := keys[0], args[0]
	if cache.CheckToken(cache.Token(observed)) != nil {
		return cacheReply(cacheInvalid, nil)
	}
	word, err := observe(tx, key, observed)
	if err != nil || word != "" {
		return cacheReply(word, err)
	}
	tx.Delete(key)
	return cacheReply(cacheApplied, nil)
}
