package cacheredis

import (
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/cache"
)

// An entry of a cache is one string: schema, token and value.
//
//	1:Jw9mX2pQ0kq3Vb8cY7tN1A:the value
//
// One string and not a hash of two fields, because then everything but compare-and-write is one plain
// command that is atomic by itself: GET reads value and token together, SET NX PX puts value, token and
// lifetime at once. A hash would need a program for each, and would have a moment between HSET and
// PEXPIRE at which an error leaves an entry without a lifetime. It also takes less memory.
const (
	entrySchema  = "1:"
	entryHeader  = len(entrySchema) + cache.TokenBytes + len(":")
	entryFormEnd = entryHeader - 1 // of the colon before the value
)

func encodeEntry(token cache.Token, value string) string {
	return entrySchema + string(token) + ":" + value
}

// decodeEntry reports false for what no version of a cache has written.
func decodeEntry(entry string) (cache.Observation, bool) {
	if len(entry) < entryHeader || !strings.HasPrefix(entry, entrySchema) || entry[entryFormEnd] != ':' {
		return cache.Observation{}, false
	}
	token := cache.Token(entry[len(entrySchema):entryFormEnd])
	if cache.CheckToken(token) != nil {
		return cache.Observation{}, false
	}
	return cache.Observation{Value: entry[entryHeader:], Token: token}, true
}
