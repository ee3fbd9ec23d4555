package httpedge

import "github.com/edgelimit/edgelimit/adapter/inbound/internal/edge"

// What this package has in common with the other doors.
type (
	// Verdict says what one question came to. VerdictAllow alone lets a request pass.
	Verdict = edge.Verdict
	// Refusal says why a question could not be asked. The zero value stands for none.
	Refusal = edge.Refusal
	// Report is what one question came to, for whoever counts or logs it. It holds no subject.
	Report = edge.Report
	// Subject is whoever is limited. It shows nothing of it when it is printed or logged.
	Subject = edge.Subject
	// HeaderStyle is a family of header fields that tell a client of its limit.
	HeaderStyle = edge.Style
	// TrustedProxies are the peers whose word about a client's address counts.
	TrustedProxies = edge.TrustedProxies
	// AddressHeader is the header in which trusted proxies tell a client's address.
	AddressHeader = edge.AddressHeader
	// AddressConfig says how a client's address becomes a subject.
	AddressConfig = edge.AddressConfig
)

// The verdicts. The zero value is invalid.
const (
	VerdictInvalid       = edge.VerdictInvalid
	VerdictAllow         = edge.VerdictAllow
	VerdictDeny          = edge.VerdictDeny
	VerdictUnavailable   = edge.VerdictUnavailable
	VerdictIndeterminate = edge.VerdictIndeterminate
	VerdictIncompatible  = edge.VerdictIncompatible
	VerdictRefused       = edge.VerdictRefused
)

// The refusals.
const (
	RefusalNone             = edge.RefusalNone
	RefusalSubjectMissing   = edge.RefusalSubjectMissing
	RefusalSubjectMalformed = edge.RefusalSubjectMalformed
	RefusalPolicyUnknown    = edge.RefusalPolicyUnknown
	RefusalCost             = edge.RefusalCost
	RefusalInternal         = edge.RefusalInternal
)

// The styles of header fields. The zero value is invalid.
const (
	HeadersInvalid = edge.StyleInvalid
	// HeadersDraft12 is RateLimit-Policy and RateLimit (a, w) of draft-ietf-httpapi-ratelimit-headers-12.
	HeadersDraft12 = edge.StyleDraft12
	// HeadersDraft11 is RateLimit-Policy and RateLimit (r, t) of its revisions 08 to 11.
	HeadersDraft11 = edge.StyleDraft11
	// HeadersRateLimit is RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset (seconds from now).
	HeadersRateLimit = edge.StyleRateLimit
	// HeadersXRateLimit is X-RateLimit-Limit, -Remaining and -Reset (seconds of the Unix epoch).
	HeadersXRateLimit = edge.StyleXRateLimit
)

// The headers of a client's address. The zero value is invalid.
const (
	AddressHeaderInvalid      = edge.AddressHeaderInvalid
	AddressHeaderForwardedFor = edge.AddressHeaderForwardedFor
	AddressHeaderForwarded    = edge.AddressHeaderForwarded
)

// MaxSubjectBytes bounds an identity that is read from a header or a query.
const MaxSubjectBytes = edge.MaxSubjectBytes

// ShadowHeader is the header field of the shadow mode: the verdict as a token, with the policy and
// when to ask again as parameters.
const ShadowHeader = "Edgelimit-Shadow"

// DefaultHeaders are the fields of the current draft in a form that clients of its earlier revisions
// understand too.
func DefaultHeaders() []HeaderStyle { return edge.DefaultStyles() }

// ParseHeaderStyle reads a style's word: draft-12, draft-11, ratelimit or x-ratelimit.
func ParseHeaderStyle(word string) (HeaderStyle, error) { return edge.ParseStyle(word) }

// ParseTrustedProxies reads a list of networks (10.0.0.0/8), addresses (::1) and "unix".
func ParseTrustedProxies(entries []string) (*TrustedProxies, error) {
	return edge.ParseTrustedProxies(entries)
}

// RawSubject is a subject by its identity, which is digested before anything else happens to it.
func RawSubject(identity string) Subject { return edge.RawSubject(identity) }

// JoinSubjects makes one subject of several: different lists never become one subject.
func JoinSubjects(subjects ...Subject) Subject { return edge.JoinSubjects(subjects...) }

// NoSubject is what a SubjectFunc gives for a request that names nobody. The reason is shown to the
// client and must hold nothing of the request.
func NoSubject(reason string) error { return edge.Refuse(RefusalSubjectMissing, reason) }

// BadSubject is what a SubjectFunc gives where what should name somebody cannot be taken.
func BadSubject(reason string) error { return edge.Refuse(RefusalSubjectMalformed, reason) }
