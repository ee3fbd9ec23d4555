package accesslog

import (
	"fmt"
	"net/netip"
)

// SubjectField names the field by which a request is limited.
type SubjectField uint8

// The subject fields. The zero value is invalid.
const (
	SubjectInvalid SubjectField = iota
	// SubjectIP is the client: an address in its canonical form (an IPv4 address written as IPv6 is the
	// IPv4 address), or a host name as it is.
	SubjectIP
	// SubjectUser is the authenticated user.
	SubjectUser
	// SubjectUserAgent is the user agent.
	SubjectUserAgent
	// SubjectPath is the path, without the query.
	SubjectPath
)

var subjectWords = [...]string{"invalid", "ip", "user", "user-agent", "path"}

// String gives the field's word.
func (f SubjectField) String() string {
	if int(f) >= len(subjectWords) {
		return subjectWords[SubjectInvalid]
	}
	return subjectWords[f]
}

// ParseSubjectField is the inverse of String.
func ParseSubjectField(word string) (SubjectField, error) {
	for f := SubjectIP; int(f) < len(subjectWords); f++ {
		if subjectWords[f] == word {
			return f, nil
		}
	}
	return SubjectInvalid, fmt.Errorf("%q is not one of %v", word, subjectWords[1:])
}

// Of gives the subject of an entry, empty where the line has none.
func (f SubjectField) Of(e Entry) string {
	switch f {
	case SubjectIP:
		if address, err := netip.ParseAddr(e.Host); err == nil {
			return address.Unmap().String()
		}
		return e.Host
	case SubjectUser:
		return e.User
	case SubjectUserAgent:
		return e.UserAgent
	case SubjectPath:
		return e.Path()
	case SubjectInvalid:
	}
	return ""
}
