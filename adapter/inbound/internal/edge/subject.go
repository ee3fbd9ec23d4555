package edge

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// MaxSubjectBytes bounds a raw identity that is read from a header or a query. What is longer is
// refused and not cut: two long identities must not become one.
const MaxSubjectBytes = 4096

// Subject is whoever is limited: a raw identity, or the digest of one. It shows neither when it is
// printed, logged or encoded. The zero value is nobody, and is refused.
type Subject struct {
	raw    string
	digest ratelimit.SubjectDigest
}

// RawSubject is a subject by its identity, which is digested before anything else happens to it.
func RawSubject(identity string) Subject { return Subject{raw: identity} }

// DigestedSubject is a subject that somebody else has digested, with the same secret.
func DigestedSubject(digest ratelimit.SubjectDigest) Subject { return Subject{digest: digest} }

// IsZero reports whether it is nobody.
func (s Subject) IsZero() bool { return s.raw == "" && s.digest.IsZero() }

const redacted = "[subject]"

// Format prints no identity, whatever the verb.
func (Subject) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// LogValue logs no identity.
func (Subject) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText encodes no identity.
func (Subject) MarshalText() ([]byte, error) { return []byte(redacted), nil }

func (s Subject) digested(digester *ratelimit.SubjectDigester) (ratelimit.SubjectDigest, error) {
	switch {
	case !s.digest.IsZero():
		return s.digest, nil
	case s.raw == "":
		return ratelimit.SubjectDigest{}, Refuse(RefusalSubjectMissing, "the request does not say whom to limit")
	case len(s.raw) > ratelimit.MaxIdentityBytes:
		return ratelimit.SubjectDigest{}, Refuse(RefusalSubjectMalformed, "the identity is too long")
	}
	return digester.Digest(s.raw)
}

// JoinSubjects makes one subject of several, as "this key on this route": different lists never
// become one subject. A list with nobody in it gives nobody.
func JoinSubjects(subjects ...Subject) Subject {
	joined := []byte("join")
	for _, s := range subjects {
		if s.IsZero() {
			return Subject{}
		}
		part, mark := s.raw, byte(':')
		if !s.digest.IsZero() {
			part, mark = s.digest.String(), '#'
		}
		joined = append(joined, mark)
		joined = strconv.AppendInt(joined, int64(len(part)), 10)
		joined = append(joined, mark)
		joined = append(joined, part...)
	}
	return RawSubject(string(joined))
}
