package parity

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// state is what stands at a key: nothing, a string, a hash, or a sorted set by member.
type state struct {
	kind  string // as TYPE says
	text  string
	pairs map[string]string
}

var nothing = state{kind: "none"}

// String is different for different states.
func (s state) String() string {
	if s.kind == "string" {
		return fmt.Sprintf("string %q", s.text)
	}
	var b strings.Builder
	b.WriteString(s.kind)
	for _, name := range slices.Sorted(maps.Keys(s.pairs)) {
		fmt.Fprintf(&b, " %q=%q", name, s.pairs[name])
	}
	return b.String()
}

// equal compares to the last character.
func (s state) equal(o state) bool {
	return s.kind == o.kind && s.text == o.text && maps.Equal(s.pairs, o.pairs)
}

// oddTexts are what a stored field may hold by accident or malice.
var oddTexts = []string{
	"", "0", "1", "-1", "+1", "-", "-0", "00", "01", "00000000000000001", "1.0", "1.5", "1e3", "nan", "inf", "0x1", " 1", "1 ", "1\n", "1\x00", "x", "\xff",
	"4398046511104", "4398046511105", "9007199254740991", "9007199254740992", "9223372036854775807", "99999999999999999999", "1:2:3", "7:",
	"closed", "open", "half-open",
}

// changed gives a text near another one, or an odd one.
func changed(r *rand.Rand, text string) string {
	if parts := strings.Split(text, " "); len(parts) > 1 && r.IntN(4) > 0 {
		i := r.IntN(len(parts))
		parts[i] = changed(r, parts[i])
		return strings.Join(parts, " ")
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && r.IntN(3) > 0 {
		switch r.IntN(6) {
		case 0:
			return "0" + text
		case 1:
			return strconv.FormatInt(n+scale(r, 1<<40)*pick(r, int64(-1), 1), 10)
		default:
			return strconv.FormatInt(n+pick(r, int64(-2), -1, 1, 2), 10)
		}
	}
	if len(text) > 0 && r.IntN(2) == 0 {
		at := r.IntN(len(text))
		switch r.IntN(3) {
		case 0:
			return text[:at] + text[at+1:]
		case 1:
			return text[:at] + pick(r, "0", "1", ":", " ", "-", "a", "\x00") + text[at:]
		default:
			return text[:at] + pick(r, "0", "1", ":", " ", "-", "a", "9") + text[at+1:]
		}
	}
	return pick(r, oddTexts...)
}

// edited changes a part of a state, or puts something foreign in its place.
func edited(r *rand.Rand, s state) state {
	if r.IntN(8) == 0 || s.kind == "none" {
		return foreign(r)
	}
	if s.kind == "string" {
		return state{kind: "string", text: changed(r, s.text)}
	}
	pairs := maps.Clone(s.pairs)
	names := slices.Sorted(maps.Keys(pairs))
	name := pick(r, names...)
	if s.kind == "zset" && r.IntN(2) == 0 {
		// The ends are what is always read.
		slices.SortStableFunc(names, func(a, b string) int { return int(number(pairs[a])) - int(number(pairs[b])) })
		name = names[pick(r, 0, min(1, len(names)-1), len(names)-1)]
	}
	value := pairs[name]
	switch r.IntN(5) {
	case 0:
		if len(pairs) > 1 {
			delete(pairs, name)
		}
	case 1:
		pairs[pick(r, "foreign", "", "z", "l2")] = pick(r, "0", "1", "-1", "-2")
	case 2:
		if s.kind == "zset" {
			delete(pairs, name)
			pairs[changed(r, name)] = value
			break
		}
		fallthrough
	default:
		if pairs[name] = changed(r, value); s.kind == "zset" {
			// Scores of the memory Store are integers that a double holds.
			pairs[name] = strconv.FormatInt(number(value)+pick(r, int64(-1), 1, scale(r, 1<<30), -scale(r, 1<<30)), 10)
		}
	}
	return state{kind: s.kind, pairs: pairs}
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // Of what this suite wrote itself.
	return n
}

// foreign is something that no program of these wrote.
func foreign(r *rand.Rand) state {
	switch r.IntN(4) {
	case 0:
		return state{kind: "string", text: pick(r, oddTexts...)}
	case 1:
		return state{kind: "hash", pairs: map[string]string{pick(r, "foreign", "m", "l", "w", ""): pick(r, oddTexts...)}}
	case 2:
		return state{kind: "zset", pairs: map[string]string{pick(r, oddTexts...): pick(r, "-1", "0", "1", "1700000000000")}}
	default:
		return nothing
	}
}
