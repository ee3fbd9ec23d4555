package rules

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// MaxRules bounds the descriptors of all files.
const MaxRules = 50_000

// File is one file of rules.
type File struct {
	Name    string // as messages show it
	Content []byte
}

// Options say what the files do not. CleanupGrace and MaxClockRegression are those of every policy; see
// ratelimit.RateLimitPolicyConfig.
type Options struct {
	// MergeDomains lets several files have rules of one domain. Without it, that is a fault.
	MergeDomains       bool
	CleanupGrace       time.Duration
	MaxClockRegression time.Duration
}

// The keys of the documents.
const (
	keyDomain         = "domain"
	keyDescriptors    = "descriptors"
	keyKey            = "key"
	keyValue          = "value"
	keyRateLimit      = "rate_limit"
	keyUnit           = "unit"
	keyRequests       = "requests_per_unit"
	keyUnlimited      = "unlimited"
	keyName           = "name"
	keyReplaces       = "replaces"
	keyShadowMode     = "shadow_mode"
	keyQuotaMode      = "quota_mode"
	keyDetailedMetric = "detailed_metric"
	keyValueToMetric  = "value_to_metric"
	keyShareThreshold = "share_threshold"
	keyMetadata       = "metadata"
	keyOwn            = "edgelimit"
	keyAlgorithm      = "algorithm"
	keyBurst          = "burst"
	keyMaxCost        = "max_cost"
)

// Parse reads files. The error is an *Error with everything that is wrong; then there are no rules.
// Files count in the order given: of two wildcards that a value has, the first wins.
func Parse(files []File, options Options) (*Rules, error) {
	p := &parser{options: options, rules: &Rules{domains: make(map[string]*node)}, owners: make(map[string]string)}
	found := &report{}
	for _, f := range files {
		p.document = document{report: found, file: f.Name, left: baseNodes + nodesPerByte*len(f.Content)}
		p.parse(f.Content)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	p.noteUnknownNames()
	p.rules.notes = found.notes
	policies := make([]*ratelimit.RateLimitPolicy, 0, len(p.rules.all))
	for _, r := range p.rules.all {
		if r.Policy != nil {
			policies = append(policies, r.Policy)
		}
	}
	if len(policies) > 0 {
		set, err := ratelimit.NewPolicySet(policies...)
		if err != nil {
			return nil, fmt.Errorf("rules: %w", err)
		}
		p.rules.policies = set
	}
	return p.rules, nil
}

// noteUnknownNames finds names that are replaced and that no rule has.
func (p *parser) noteUnknownNames() {
	names := make(map[string]bool)
	for _, r := range p.rules.all {
		names[r.Name] = true
	}
	for _, r := range p.rules.all {
		for i, name := range r.Replaces {
			if !names[name] {
				p.notes = append(p.notes, Note{
					File: r.File, Line: r.Line, Path: index(join(join(r.Path, keyRateLimit), keyReplaces), i),
					Text: "no rule has the name " + quote(name),
				})
			}
		}
	}
}

type parser struct {
	document
	options Options
	rules   *Rules
	owners  map[string]string // by domain, the file that has it first
	count   int               // descriptors of all files

	domain string
	steps  []step
}

func (p *parser) parse(content []byte) {
	root := p.root(content)
	if root == nil {
		return
	}
	fields := p.mapping(root, "", keyDomain, keyDescriptors)
	before := len(p.faults)
	p.domain = p.text(fields[keyDomain], keyDomain)
	if p.domain == "" && len(p.faults) == before {
		p.fault(root, keyDomain, "is missing or empty, want the domain's name")
	}
	if first, twice := p.owners[p.domain]; twice && p.domain != "" && !p.options.MergeDomains {
		p.fault(fields[keyDomain], keyDomain, "is %s, which %s has as well: domains are not merged", quote(p.domain), first)
		p.domain = "" // its descriptors are judged by themselves
	} else if !twice {
		p.owners[p.domain] = p.file
	}
	at := p.rules.domains[p.domain]
	if at == nil || p.domain == "" {
		at = newNode()
		p.rules.domains[p.domain] = at
	}
	p.steps = p.steps[:0]
	p.descriptors(at, fields[keyDescriptors], keyDescriptors, 1)
}

func (p *parser) descriptors(parent *node, n *yaml.Node, path string, depth int) {
	elements := p.list(n, path)
	if len(elements) > 0 && depth > MaxDepth {
		p.fault(n, path, "is more than %d deep", MaxDepth)
		return
	}
	for i, element := range elements {
		if p.count++; p.count > MaxRules {
			if p.count == MaxRules+1 {
				p.fault(element, index(path, i), "is one of more than %d descriptors", MaxRules)
			}
			return
		}
		if element = p.visit(element, index(path, i)); element == nil {
			return
		}
		p.descriptor(parent, element, index(path, i), depth)
	}
}

// descriptor reads one element of a list of descriptors and puts it below its parent.
func (p *parser) descriptor(parent *node, n *yaml.Node, path string, depth int) {
	before := len(p.faults)
	fields := p.mapping(n, path, keyKey, keyValue, keyRateLimit, keyShadowMode, keyQuotaMode, keyDetailedMetric,
		keyValueToMetric, keyShareThreshold, keyMetadata, keyOwn, keyDescriptors)
	s := step{key: p.text(fields[keyKey], join(path, keyKey)), value: p.text(fields[keyValue], join(path, keyValue))}
	switch {
	case len(p.faults) > before:
	case s.key == "":
		p.fault(n, join(path, keyKey), "is missing or empty, want the descriptor's key")
	case s.value == "" && strings.HasSuffix(s.key, "*"):
		p.fault(fields[keyKey], join(path, keyKey),
			"is %s without a value: elsewhere the * stands for the rest of key and value joined, and keys are whole here", quote(s.key))
	}
	isWildcard := strings.HasSuffix(s.value, "*")
	share := p.boolean(fields[keyShareThreshold], join(path, keyShareThreshold))
	if share && !isWildcard {
		p.fault(fields[keyShareThreshold], join(path, keyShareThreshold), "is true, and the value does not end in *: only the matches of such a value can share a threshold")
	}
	child := p.child(parent, n, path, s, len(p.faults) > before)
	if share {
		child.pattern = s.value
	}
	if strings.Contains(strings.TrimSuffix(s.value, "*"), "*") {
		p.note(fields[keyValue], join(path, keyValue), "only a * at the end stands for anything; the one before it is a character")
	}
	p.steps = append(p.steps, s)
	p.rule(child, n, fields, path)
	p.descriptors(child, fields[keyDescriptors], join(path, keyDescriptors), depth+1)
	p.steps = p.steps[:len(p.steps)-1]
}

// child gives the node of a descriptor, which is new unless it is a duplicate.
func (p *parser) child(parent *node, n *yaml.Node, path string, s step, faulty bool) *node {
	child := newNode()
	child.place = place(p.file, n.Line, path)
	if faulty {
		return child // it belongs nowhere
	}
	var twin *node
	if s.value == "" {
		twin = parent.byKey[s.key]
		parent.byKey[s.key] = child
	} else {
		e := Entry{Key: s.key, Value: s.value}
		twin = parent.exact[e]
		parent.exact[e] = child
		if prefix, ok := strings.CutSuffix(s.value, "*"); ok {
			parent.wildcard[s.key] = append(parent.wildcard[s.key], &wildcard{prefix: prefix, node: child})
		}
	}
	if twin != nil {
		p.fault(n, path, "is a duplicate of %s", twin.place)
	}
	return child
}

func showSteps(steps []step) string {
	var b strings.Builder
	for i, s := range steps {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoteKey(s.key))
		if s.value != "" {
			b.WriteByte('=')
			b.WriteString(quoteValue(s.value))
		}
	}
	return b.String()
}
