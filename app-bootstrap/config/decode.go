package config

import (
	"errors"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// decoder turns the tree of one source into typed values and collects what is wrong with it.
type decoder struct {
	report
	how      strictness
	values   values            // what was given, by path
	policies map[string]values // what was given of rate-limit policies, by ID and key
	breakers map[string]values // the same of circuit-breaker policies
	read     func(path string, limit int64) ([]byte, error)
}

func newDecoder(how strictness) *decoder {
	return &decoder{
		report: report{origins: make(map[string]string)},
		how:    how, values: make(values), policies: make(map[string]values), breakers: make(map[string]values), read: readFile,
	}
}

// section decodes one of our sections, which may be absent. It reports whether it is there.
func (d *decoder) section(path string, tree map[string]any) bool {
	content, there := tree[leaf(path)]
	if !there {
		return false
	}
	d.node(at(path), path, content, "", d.values)
	return true
}

// node decodes what stands at path. policy is the ID of the policy inside which it is, and into
// takes the values.
func (d *decoder) node(n *node, path string, content any, policy string, into values) {
	if n.field != nil {
		d.value(n.field, path, content, policy, into)
		return
	}
	if content == nil {
		return // a section without a line in it
	}
	section, ok := content.(map[string]any)
	if !ok {
		if isTLS(n.path) {
			d.add(path, "is %s, want a section with enabled and the names of files", describe(content))
			return
		}
		d.add(path, "is %s, want a section", describeType(content))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(section)) {
		child := n.child(key)
		childPath := join(path, showKey(key))
		if child == nil && strings.Contains(key, ".") {
			childPath = join(path, quote(key))
		}
		switch {
		case child == nil:
			d.unknown(n, childPath, key, policy)
		case d.policiesAt(n.path) != nil:
			own := make(values)
			d.policiesAt(n.path)[key] = own
			if section[key] != nil {
				d.node(child, childPath, section[key], showKey(key), own)
			}
		default:
			d.node(child, childPath, section[key], policy, into)
		}
	}
}

func (d *decoder) value(f *field, path string, content any, policy string, into values) {
	if leaf(f.path) == "address" {
		if _, several := content.([]any); several {
			d.add(path, "is a list, want %s: %s", f.want(), oneServer)
			return
		}
	}
	typed, problem := f.parse(content, d.how)
	if problem != "" {
		d.add(path, "%s", problem)
		return
	}
	key := f.path
	if policy != "" {
		key = leaf(f.path)
	}
	into[key] = typed
}

const oneServer = "cluster and sentinel are not supported in this revision"

// topology recognizes keys that ask for more than one server.
var topology = regexp.MustCompile(`(?i)sentinel|cluster|addresses|addrs|nodes|hosts|seeds|master-?name|replica`)

func (d *decoder) unknown(section *node, path, key, policy string) {
	if redisSection(section.path) && topology.MatchString(key) {
		d.add(path, "is no known key: %s; %s takes one host:port", oneServer, section.path+".address")
		return
	}
	d.add(path, "is no known key; the nearest is %s", nearest(section.path, key, policy))
}

// judge finds values that are out of range below a section and gives the defaults of what is absent
// or wrong. It says what is always required.
func (d *decoder) judge(fields []*field) {
	for _, f := range fields {
		value, given := d.values[f.path]
		if given {
			problem := f.judge(value)
			if problem == "" {
				continue
			}
			d.add(f.path, "%s", problem)
			delete(d.values, f.path)
		} else if f.required == "always" && !d.has(f.path) {
			d.add(f.path, "is missing, want %s", f.want())
		}
		if f.def != nil {
			d.values[f.path] = f.def
		}
	}
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// showKey writes a key so that a path with it can be read and has one line.
func showKey(key string) string {
	if len(key) > ratelimit.MaxPolicyIDBytes || !plainKey.MatchString(key) {
		return quote(key)
	}
	return key
}

// cause gives the reason why a file could not be read, without its path.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return strings.ReplaceAll(strconv.Quote(err.Error()), `"`, "")
}
