package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of one document.
const (
	// MaxDepth is the greatest depth of descriptors.
	MaxDepth = 32
	// Of a file, baseNodes and nodesPerByte for each of its bytes are looked at, each alias as often as it
	// is used. What stands in a file without aliases takes a byte at least, so they alone can exceed it.
	baseNodes    = 1000
	nodesPerByte = 10
	// maxFaults bounds what is told of all files.
	maxFaults = 1000
	// Of metadata.
	maxMetadataNodes = 1000
	maxMetadataDepth = 16
	maxExactInteger  = 1 << 53
)

// document reads one file's YAML. Everything that is wrong goes to the report.
type document struct {
	*report
	file string
	left int // nodes that may still be looked at; see nodesPerByte
	over bool
}

func (d *document) fault(n *yaml.Node, path, format string, args ...any) {
	line := 0
	if n != nil {
		line = n.Line
	}
	switch {
	case len(d.faults) < maxFaults:
		d.faults = append(d.faults, Fault{File: d.file, Line: line, Path: path, Problem: fmt.Sprintf(format, args...)})
	case len(d.faults) == maxFaults:
		d.faults = append(d.faults, Fault{File: d.file, Line: line, Path: path, Problem: "has more faults, of which none is told"})
		d.left = 0
	default:
		d.left = 0 // nothing is worth looking at any more
	}
}

func (d *document) note(n *yaml.Node, path, format string, args ...any) {
	d.notes = append(d.notes, Note{File: d.file, Line: n.Line, Path: path, Text: fmt.Sprintf(format, args...)})
}

var yamlLine = regexp.MustCompile(`^line (\d+): (.*)$`)

// root gives the one document of a file, nil where there is none; what is wrong is in the report.
func (d *document) root(content []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var first *yaml.Node
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			d.syntax(err)
			return nil
		}
		if n.Kind != yaml.DocumentNode || len(n.Content) != 1 || isNull(n.Content[0]) {
			continue
		}
		if first != nil {
			d.fault(n.Content[0], "", "begins a second YAML document, want one")
			return nil
		}
		first = n.Content[0]
	}
	if first == nil {
		d.fault(nil, "", "is empty, want a domain and its descriptors")
	}
	return first
}

func (d *document) syntax(err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	f := Fault{File: d.file, Problem: "is not valid YAML: " + message}
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		f.Line, _ = strconv.Atoi(m[1])
		f.Problem = "is not valid YAML: " + m[2]
	}
	d.faults = append(d.faults, f)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// visit counts a node and follows aliases. It gives nil for what is not to be looked at.
func (d *document) visit(n *yaml.Node, path string) *yaml.Node {
	d.left--
	if d.left < 0 {
		if !d.over {
			d.over = true
			d.fault(n, path, "stands for too much: aliases count as often as they are used")
		}
		return nil
	}
	for hops := 0; n.Kind == yaml.AliasNode; hops++ {
		if n.Alias == nil || hops > MaxDepth {
			d.fault(n, path, "is an alias of itself")
			return nil
		}
		n = n.Alias
	}
	return n
}

// mapping gives the values of a mapping by key. Keys that are not among those known, and keys that are
// there twice, are faults; the value of a key may be nil where it says nothing.
func (d *document) mapping(n *yaml.Node, path string, known ...string) map[string]*yaml.Node {
	fields := make(map[string]*yaml.Node)
	d.collect(n, path, known, fields, 0)
	return fields
}

func (d *document) collect(n *yaml.Node, path string, known []string, fields map[string]*yaml.Node, depth int) {
	if n = d.visit(n, path); n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.fault(n, path, "is %s, want a mapping of %s", describe(n), strings.Join(known, ", "))
		return
	}
	own := make(map[string]bool)
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := d.visit(n.Content[i], path)
		if key == nil {
			return
		}
		switch {
		case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
			merged = append(merged, n.Content[i+1])
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			d.fault(key, path, "has a key that is %s, want one of %s", describe(key), strings.Join(known, ", "))
		case own[key.Value]:
			d.fault(key, join(path, key.Value), "is there twice")
		case !slices.Contains(known, key.Value):
			d.fault(key, join(path, quoteKey(key.Value)), "is no known key, want one of %s", strings.Join(known, ", "))
		default:
			own[key.Value] = true
			if _, outer := fields[key.Value]; outer {
				continue // what merges in gives way to what is there
			}
			fields[key.Value] = nil
			if value := d.visit(n.Content[i+1], join(path, key.Value)); value != nil && !isNull(value) {
				fields[key.Value] = value
			}
		}
	}
	for _, m := range merged {
		if m = d.visit(m, path); m == nil {
			return
		}
		if depth == MaxDepth {
			d.fault(m, path, "merges more than %d deep", MaxDepth)
			return
		}
		each := []*yaml.Node{m}
		if m.Kind == yaml.SequenceNode {
			each = m.Content
		}
		for _, source := range each {
			d.collect(source, path, known, fields, depth+1)
		}
	}
}

// list gives the elements of a sequence, none where it is absent.
func (d *document) list(n *yaml.Node, path string) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		d.fault(n, path, "is %s, want a list", describe(n))
		return nil
	}
	return n.Content
}

// text reads a text; what looks like a whole number or a truth value is one as well, as written. What a
// descriptor's value is, no message repeats: it can be somebody's name.
func (d *document) text(n *yaml.Node, path string) string {
	if n == nil {
		return ""
	}
	if n.Kind == yaml.ScalarNode {
		switch n.ShortTag() {
		case "!!str", "!!int", "!!bool":
			return n.Value
		}
	}
	d.fault(n, path, "is %s, want a text: put it in quotes", describeKind(n))
	return ""
}

// boolean reads true or false, in the words of YAML 1.1 as well.
func (d *document) boolean(n *yaml.Node, path string) bool {
	if n == nil {
		return false
	}
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		switch strings.ToLower(n.Value) {
		case "true", "yes", "on", "y":
			return true
		case "false", "no", "off", "n":
			return false
		}
	}
	d.fault(n, path, "is %s, want true or false", describe(n))
	return false
}

// count reads a whole number up to most.
func (d *document) count(n *yaml.Node, path string, least, most int64) int64 {
	if n == nil {
		return 0
	}
	var number int64
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" && n.Decode(&number) == nil && number >= least && number <= most {
		return number
	}
	d.fault(n, path, "is %s, want a whole number, %d..%d", describe(n), least, most)
	return 0
}

// metadata reads a mapping of anything that JSON has.
func (d *document) metadata(n *yaml.Node, path string) map[string]any {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.fault(n, path, "is %s, want a mapping", describe(n))
		return nil
	}
	left := maxMetadataNodes
	values, _ := d.free(n, path, &left, 0).(map[string]any)
	return values
}

func (d *document) free(n *yaml.Node, path string, left *int, depth int) any {
	if *left--; *left == -1 || depth > maxMetadataDepth {
		d.fault(n, path, "metadata has more than %d values or is more than %d deep", maxMetadataNodes, maxMetadataDepth)
	}
	if *left < 0 || depth > maxMetadataDepth {
		return nil
	}
	if n = d.visit(n, path); n == nil {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		values := make(map[string]any)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := d.visit(n.Content[i], path)
			if key == nil {
				return nil
			}
			at := join(path, quoteKey(key.Value))
			_, twice := values[key.Value]
			switch {
			case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
				d.fault(key, path, "has a key that is %s, want a text", describe(key))
			case twice:
				d.fault(key, at, "is there twice")
			default:
				values[key.Value] = d.free(n.Content[i+1], at, left, depth+1)
			}
		}
		return values
	case yaml.SequenceNode:
		values := make([]any, 0, len(n.Content))
		for i, element := range n.Content {
			values = append(values, d.free(element, index(path, i), left, depth+1))
		}
		return values
	case yaml.ScalarNode:
		return d.scalar(n, path)
	case yaml.DocumentNode, yaml.AliasNode:
	}
	return nil
}

func (d *document) scalar(n *yaml.Node, path string) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!str":
		return n.Value
	case "!!bool":
		return d.boolean(n, path)
	case "!!int":
		var number int64
		if n.Decode(&number) == nil && number >= -maxExactInteger && number <= maxExactInteger {
			return float64(number)
		}
	case "!!float":
		var number float64
		if n.Decode(&number) == nil && !math.IsNaN(number) && !math.IsInf(number, 0) {
			return number
		}
	}
	d.fault(n, path, "is %s, want a text, a truth value or a number that a double holds exactly", describe(n))
	return nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func quoteKey(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return quote(key)
}

var plainValue = regexp.MustCompile(`^[A-Za-z0-9_.:/@*-]{1,64}$`)

func quoteValue(value string) string {
	if plainValue.MatchString(value) {
		return value
	}
	return quote(value)
}

// maxShown bounds how much of a text a message repeats.
const maxShown = 64

func quote(text string) string {
	if len(text) > maxShown {
		return strconv.Quote(strings.ToValidUTF8(text[:maxShown], "")) + "..."
	}
	return strconv.Quote(text)
}

// describeKind says what a node is and not what it holds.
func describeKind(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return "of type " + n.ShortTag()
	}
	return describe(n)
}

// describe says what a node is, for messages.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!null":
			return "nothing"
		case "!!str":
			return "the text " + quote(n.Value)
		case "!!int", "!!float":
			return "the number " + quoteNumber(n.Value)
		case "!!bool":
			return n.Value
		}
		return quote(n.Value) + " of type " + n.ShortTag()
	case yaml.DocumentNode, yaml.AliasNode:
	}
	return "an alias"
}

func quoteNumber(text string) string {
	if len(text) > maxShown {
		return text[:maxShown] + "..."
	}
	return text
}
