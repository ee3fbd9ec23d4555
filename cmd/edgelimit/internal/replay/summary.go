package replay

import "github.com/edgelimit/edgelimit/cmd/edgelimit/internal/accesslog"

// shownUnparsed is how many lines that did not parse are kept to be shown.
const shownUnparsed = 3

// Summary is what came of a replay. Lines = Requests + Unparsed + Late + WithoutSubject.
type Summary struct {
	SubjectField string `json:"subjectField"`
	// Lines were read.
	Lines int64 `json:"lines"`
	// Requests were evaluated, under each policy.
	Requests int64 `json:"requests"`
	// Unparsed lines are in neither log format.
	Unparsed int64 `json:"unparsed"`
	// Late lines were too far out of order to be evaluated.
	Late int64 `json:"late"`
	// WithoutSubject are lines whose subject field is empty.
	WithoutSubject int64 `json:"withoutSubject"`
	// FirstUnparsed shows the first few of them.
	FirstUnparsed []UnparsedLine `json:"firstUnparsed,omitempty"`
	// FromMillis and ToMillis are the times of the first and the last request, 0 where there is none.
	FromMillis int64           `json:"fromMillis"`
	ToMillis   int64           `json:"toMillis"`
	Policies   []PolicySummary `json:"policies"`
}

// UnparsedLine is a line that did not parse.
type UnparsedLine struct {
	Log    string `json:"log"`
	Line   int64  `json:"line"`
	Reason string `json:"reason"`
	Text   string `json:"text"` // the line's beginning, as it is: quote it before it goes to a terminal
}

// PolicySummary is what came of one policy. Requests = Admitted + Denied + Indeterminate + the sums
// of Unavailable and Incompatible.
type PolicySummary struct {
	PolicyID      string           `json:"policyId"`
	Revision      int64            `json:"policyRevision"`
	Algorithm     string           `json:"algorithm"`
	Requests      int64            `json:"requests"`
	Admitted      int64            `json:"admitted"`
	Denied        int64            `json:"denied"`
	DeniedShare   float64          `json:"deniedShare"`            // of the requests, 0..1
	Unavailable   map[string]int64 `json:"unavailable,omitempty"`  // by category
	Indeterminate int64            `json:"indeterminate"`          //
	Incompatible  map[string]int64 `json:"incompatible,omitempty"` // by category
	// Busiest is the window with the most requests of all subjects together, the earliest of several.
	Busiest *Window `json:"busiestWindow,omitempty"`
	// DeniedSubjects is how many subjects were denied at least once.
	DeniedSubjects int `json:"deniedSubjects"`
	// MostDenied are the ten subjects with the most denials.
	MostDenied []Subject `json:"mostDenied,omitempty"`
	Series     Series    `json:"series"`
}

// Window is a stretch of time that is aligned to the epoch.
type Window struct {
	Kind       string `json:"kind"` // "window", "period" or "refill-period": which of the policy's parameters gives its length
	Millis     int64  `json:"lengthMillis"`
	FromMillis int64  `json:"fromMillis"`
	Requests   int64  `json:"requests"`
	Denied     int64  `json:"denied"`
}

// Subject is a subject and how often it was denied.
type Subject struct {
	Digest string `json:"subjectDigest"`
	Denied int64  `json:"denied"`
}

func (s *Summary) unparsed(log string, u *accesslog.Unparsed) {
	s.Unparsed++
	if len(s.FirstUnparsed) < shownUnparsed {
		s.FirstUnparsed = append(s.FirstUnparsed, UnparsedLine{Log: log, Line: u.Line, Reason: u.Reason, Text: u.Text})
	}
}
