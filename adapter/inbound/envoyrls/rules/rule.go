package rules

import "github.com/edgelimit/edgelimit/shared-contract/ratelimit"

// Effect says what a rule does with what it matches.
type Effect uint8

// The effects. The zero value is invalid.
const (
	EffectInvalid Effect = iota
	// EffectLimit: a policy decides.
	EffectLimit
	// EffectUnlimited: everything passes, and nothing is counted.
	EffectUnlimited
	// EffectDeny: requests_per_unit is 0 and nothing passes. No policy is needed.
	EffectDeny
)

var effectWords = []string{"INVALID", "limit", "unlimited", "deny"}

// String gives the effect's word.
func (e Effect) String() string { return wordOf(effectWords, uint8(e)) }

// Mode says what becomes of a denial.
type Mode uint8

// The modes. The zero value is invalid.
const (
	ModeInvalid Mode = iota
	// ModeEnforce: a denial is OVER_LIMIT.
	ModeEnforce
	// ModeShadow: a denial is OK.
	ModeShadow
	// ModeQuota: a denial is OK and named in the dynamic metadata.
	ModeQuota
)

var modeWords = []string{"INVALID", "enforce", "shadow", "quota"}

// String gives the mode's word.
func (m Mode) String() string { return wordOf(modeWords, uint8(m)) }

func wordOf(words []string, i uint8) string {
	if int(i) >= len(words) {
		return words[0]
	}
	return words[i]
}

// Rule is what a descriptor of the rules with a rate_limit block says. It is not changed.
type Rule struct {
	Domain string
	// Descriptor is the rule's place among the descriptors, for people: user=alice, action=read*.
	Descriptor string
	File       string
	Line       int
	Path       string // in the document, such as descriptors[0].descriptors[1]

	Effect Effect
	Mode   Mode
	// Unit and RequestsPerUnit are as written; UnitInvalid and 0 where Effect is EffectUnlimited.
	Unit            Unit
	RequestsPerUnit uint32
	Name            string   // "" is none
	Replaces        []string // names of rules that this one takes the place of
	// Policy decides where Effect is EffectLimit, and is nil otherwise.
	Policy *ratelimit.RateLimitPolicy
	// Metadata goes into the dynamic metadata of what passes: nil, or texts, float64, truth values,
	// nil, []any and map[string]any.
	Metadata map[string]any
}

// Rules are the rules of a set of files.
type Rules struct {
	domains  map[string]*node
	all      []*Rule
	policies *ratelimit.PolicySet
	notes    []Note
}

// All lists the rules in the order of files and lines.
func (r *Rules) All() []*Rule { return r.all }

// Domains is the number of domains.
func (r *Rules) Domains() int { return len(r.domains) }

// Policies are those of all rules that limit; nil where none does.
func (r *Rules) Policies() *ratelimit.PolicySet { return r.policies }

// Notes list what the files say that has no effect here, or another one.
func (r *Rules) Notes() []Note { return r.notes }

// Entry is one entry of a request's descriptor.
type Entry struct{ Key, Value string }

// Match is what a descriptor found.
type Match struct {
	// KnownDomain says whether any rule has the domain.
	KnownDomain bool
	// Rule is nil where no rule applies.
	Rule *Rule

	shared []string // by entry, the pattern whose values count together; nil where none do
}

// Value is what an entry counts as: its own value, or the pattern of a rule whose values share one
// threshold, for which shared is true.
func (m Match) Value(i int, own string) (value string, shared bool) {
	if m.shared == nil || m.shared[i] == "" {
		return own, false
	}
	return m.shared[i], true
}

// node is a descriptor of the rules.
type node struct {
	place    string // in the files, for messages
	pattern  string // the value where its matches share one threshold, "" otherwise
	rule     *Rule
	exact    map[Entry]*node
	wildcard map[string][]*wildcard // by key, in the order of the file
	byKey    map[string]*node
}

type wildcard struct {
	prefix string
	node   *node
}

func newNode() *node {
	return &node{exact: make(map[Entry]*node), wildcard: make(map[string][]*wildcard), byKey: make(map[string]*node)}
}

// next gives the most specific child of an entry: that of its very value, then the first whose
// wildcard its value has, then that of its key alone.
func (n *node) next(e Entry) *node {
	if e.Value != "" {
		if child := n.exact[e]; child != nil {
			return child
		}
	}
	for _, w := range n.wildcard[e.Key] {
		if len(e.Value) >= len(w.prefix) && e.Value[:len(w.prefix)] == w.prefix {
			return w.node
		}
	}
	return n.byKey[e.Key]
}

// Find looks up a request's descriptor. A rule applies to descriptors of exactly its own depth. At
// each level the most specific child is taken, and there is no way back from it.
func (r *Rules) Find(domain string, entries []Entry) Match {
	at := r.domains[domain]
	if at == nil {
		return Match{}
	}
	m := Match{KnownDomain: true}
	for i, e := range entries {
		at = at.next(e)
		if at == nil {
			return Match{KnownDomain: true}
		}
		if at.pattern != "" {
			if m.shared == nil {
				m.shared = make([]string, len(entries))
			}
			m.shared[i] = at.pattern
		}
		if i == len(entries)-1 {
			m.Rule = at.rule
		}
	}
	return m
}
