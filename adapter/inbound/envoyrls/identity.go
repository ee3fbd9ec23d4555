package envoyrls

import (
	"encoding/binary"

	"github.com/edgelimit/edgelimit/adapter/inbound/envoyrls/rules"
)

// The canonical form of a descriptor: a label, the domain, and each entry's key and value, each with its
// length before it; a value that stands for all that share its rule's threshold is marked as such. No
// two descriptors that count apart have the same form.
const (
	identityLabel = "envoy descriptor v1"
	ownValue      = 0
	sharedValue   = 1
)

// appendIdentity appends the canonical form of a descriptor.
func appendIdentity(to []byte, domain string, entries []rules.Entry, match rules.Match) []byte {
	to = appendText(to, identityLabel)
	to = appendText(to, domain)
	to = binary.BigEndian.AppendUint32(to, uint32(len(entries))) //nolint:gosec // G115: at most MaxEntries.
	for i, e := range entries {
		to = appendText(to, e.Key)
		value, shared := match.Value(i, e.Value)
		kind := byte(ownValue)
		if shared {
			kind = sharedValue
		}
		to = append(to, kind)
		to = appendText(to, value)
	}
	return to
}

func appendText(to []byte, text string) []byte {
	to = binary.BigEndian.AppendUint64(to, uint64(len(text)))
	return append(to, text...)
}
