package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// parameter is a key that belongs to an algorithm.
type parameter struct {
	key   string // equal to the Go field of its Parameters, in kebab case: RefillTokens, refill-tokens
	kind  kind   // kindInteger or kindDuration, the same in every algorithm that has the key
	span  string // what is allowed, for messages and the reference
	about string
}

// algorithmEntry says how one algorithm is configured.
type algorithmEntry struct {
	algorithm  ratelimit.Algorithm
	parameters []parameter
	// build takes the values by key. All parameters are required; what is missing is zero here.
	build func(values) ratelimit.Parameters
}

const periodSpan = "1ms..100 years, whole milliseconds"

// registry is the one place where algorithms are added.
var registry = []algorithmEntry{
	{
		algorithm: ratelimit.AlgorithmFixedWindow,
		parameters: []parameter{
			{"limit", kindInteger, "1..9007199254740991", "The units that each window admits."},
			{"window", kindDuration, periodSpan, "The window's length."},
		},
		build: func(v values) ratelimit.Parameters {
			return ratelimit.FixedWindowParameters{Limit: v.integer("limit"), Window: v.duration("window")}
		},
	},
	{
		algorithm: ratelimit.AlgorithmSlidingWindowCounter,
		parameters: []parameter{
			{"limit", kindInteger, "1..9007199254", "The units that the sliding window admits."},
			{"window", kindDuration, periodSpan, "The window's length."},
		},
		build: func(v values) ratelimit.Parameters {
			return ratelimit.SlidingWindowCounterParameters{Limit: v.integer("limit"), Window: v.duration("window")}
		},
	},
	{
		algorithm: ratelimit.AlgorithmTokenBucket,
		parameters: []parameter{
			{"capacity", kindInteger, "1..9007199254740990, less with some refills", "The tokens of a full bucket: what can be admitted at once."},
			{"refill-tokens", kindInteger, "1..9007199254740990, less with some periods", "The tokens that each refill-period brings."},
			{"refill-period", kindDuration, periodSpan, "The time that refill-tokens take to come."},
		},
		build: func(v values) ratelimit.Parameters {
			return ratelimit.TokenBucketParameters{
				Capacity: v.integer("capacity"), RefillTokens: v.integer("refill-tokens"), RefillPeriod: v.duration("refill-period"),
			}
		},
	},
	{
		algorithm: ratelimit.AlgorithmGCRA,
		parameters: []parameter{
			{"limit", kindInteger, "1..9007199254740991, less with some periods", "Of gcra: the units that each period brings, evenly spaced."},
			{"period", kindDuration, periodSpan, "The time that limit units take to come."},
			{"burst", kindInteger, "1..9007199254740991, less with some rates", "The units that can be admitted at once."},
		},
		build: func(v values) ratelimit.Parameters {
			return ratelimit.GCRAParameters{Limit: v.integer("limit"), Period: v.duration("period"), Burst: v.integer("burst")}
		},
	},
	{
		algorithm: ratelimit.AlgorithmSlidingWindowLog,
		parameters: []parameter{
			{"limit", kindInteger, "1..10000", "Of a log: the units that any window admits, exactly; as many entries are kept for a subject."},
			{"window", kindDuration, periodSpan, "The window's length."},
		},
		build: func(v values) ratelimit.Parameters {
			return ratelimit.SlidingWindowLogParameters{Limit: v.integer("limit"), Window: v.duration("window")}
		},
	},
}

// algorithmWords lists the words of the registry behind an invalid first one.
func algorithmWords() []string {
	words := []string{"INVALID"}
	for _, entry := range registry {
		words = append(words, entry.algorithm.String())
	}
	return words
}

func findAlgorithm(word string) *algorithmEntry {
	for i := range registry {
		if registry[i].algorithm.String() == word {
			return &registry[i]
		}
	}
	return nil
}

func (e *algorithmEntry) parameter(key string) *parameter {
	for i := range e.parameters {
		if e.parameters[i].key == key {
			return &e.parameters[i]
		}
	}
	return nil
}

// owners lists the algorithms that a parameter belongs to; none for a key that is no parameter.
func owners(key string) []string {
	var words []string
	for i := range registry {
		if registry[i].parameter(key) != nil {
			words = append(words, registry[i].algorithm.String())
		}
	}
	return words
}

// parameterFields gives one field for each key of any algorithm, in the order of the registry.
func parameterFields() []*field {
	byKey := make(map[string]*field)
	var fields []*field
	spans := make(map[string]map[string][]string) // key, span, algorithms
	for _, entry := range registry {
		for _, p := range entry.parameters {
			if byKey[p.key] == nil {
				byKey[p.key] = &field{path: policyPattern + "." + p.key, kind: p.kind, about: p.about}
				fields = append(fields, byKey[p.key])
				spans[p.key] = make(map[string][]string)
			} else if !strings.Contains(byKey[p.key].about, p.about) {
				byKey[p.key].about += " " + p.about
			}
			spans[p.key][p.span] = append(spans[p.key][p.span], entry.algorithm.String())
		}
	}
	for key, f := range byKey {
		f.required = "for " + strings.Join(owners(key), ", ")
		if len(spans[key]) == 1 {
			for span := range spans[key] {
				f.allowed = span
			}
			continue
		}
		var parts []string
		for _, span := range slices.Sorted(maps.Keys(spans[key])) {
			parts = append(parts, span+" ("+strings.Join(spans[key][span], ", ")+")")
		}
		f.allowed = strings.Join(parts, "; ")
	}
	return fields
}
