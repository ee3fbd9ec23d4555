package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is the type of a key's value.
type kind uint8

const (
	kindInvalid  kind = iota
	kindText          // string; low..high bound its length
	kindWord          // string, one of words
	kindFile          // string, a file's path
	kindSecret        // string that no message repeats
	kindInteger       // int64
	kindBoolean       // bool
	kindDuration      // time.Duration
	kindList          // []string; low..high bound their number, words each of them
)

var kindWords = []string{"INVALID", "text", "word", "file", "secret text", "integer", "true or false", "duration", "list of texts"}

func (k kind) String() string { return wordOf(kindWords, uint8(k)) }

// field describes one key. It is data: decoding, the environment and the reference read it.
type field struct {
	path     string // with <id> for a policy's ID
	kind     kind
	def      any    // string, int64, bool or time.Duration; nil where there is no default
	required string // when it is required, as the reference says it; "" is never
	low      int64  // least length, integer, or nanoseconds
	high     int64  // greatest; 0 where something else judges the range
	words    []string
	allowed  string // what is allowed where low, high and words do not say it
	about    string
}

// values holds typed values by the path of their field.
type values map[string]any

func (v values) text(path string) string            { s, _ := v[path].(string); return s }
func (v values) integer(path string) int64          { i, _ := v[path].(int64); return i }
func (v values) number(path string) int             { return int(v.integer(path)) }
func (v values) boolean(path string) bool           { b, _ := v[path].(bool); return b }
func (v values) duration(path string) time.Duration { d, _ := v[path].(time.Duration); return d }
func (v values) list(path string) []string          { l, _ := v[path].([]string); return l }
func (v values) given(path string) bool             { _, ok := v[path]; return ok }

// span says the range of a field, "" where it has none.
func (f *field) span() string {
	switch {
	case f.allowed != "":
		return f.allowed
	case len(f.words) > 0:
		return orList(f.words[1:])
	case f.high == 0:
		return ""
	case f.kind == kindDuration:
		return durationText(time.Duration(f.low)) + ".." + durationText(time.Duration(f.high))
	case f.kind == kindInteger:
		return fmt.Sprintf("%d..%d", f.low, f.high)
	default:
		return fmt.Sprintf("%d..%d bytes", f.low, f.high)
	}
}

// want says what is allowed, type and range.
func (f *field) want() string {
	span := f.span()
	switch f.kind {
	case kindWord, kindBoolean:
		if span == "" {
			return "true or false"
		}
		return span
	case kindText, kindFile, kindSecret:
		if f.allowed != "" {
			return f.allowed
		}
		return "a text of " + span
	case kindList:
		if len(f.words) > 0 {
			return "a list of different words of " + strings.Join(f.words[1:], ", ")
		}
		return "a list of " + span
	case kindInteger:
		return strings.TrimSpace("an integer " + span)
	case kindDuration:
		if span == "" {
			return "a duration with its unit, such as 50ms, 1m or 24h"
		}
		return "a duration with its unit, " + span
	case kindInvalid:
	}
	return span
}

// judge gives what is wrong with a value of the right type, "" for nothing.
func (f *field) judge(value any) string {
	fine, shown := true, ""
	switch v := value.(type) {
	case int64:
		fine, shown = f.high == 0 || v >= f.low && v <= f.high, strconv.FormatInt(v, 10)
	case time.Duration:
		fine, shown = f.high == 0 || int64(v) >= f.low && int64(v) <= f.high, durationText(v)
	case []string:
		for _, element := range v {
			if len(f.words) > 0 && !slices.Contains(f.words[1:], element) {
				return fmt.Sprintf("has %s, want %s", quote(element), f.want())
			}
		}
		fine, shown = int64(len(v)) >= f.low && int64(len(v)) <= f.high, fmt.Sprintf("a list of %d, more than %d", len(v), f.high)
	case string:
		switch {
		case len(f.words) > 0:
			fine = slices.Contains(f.words[1:], v)
		case f.high > 0:
			fine = int64(len(v)) >= f.low && int64(len(v)) <= f.high
		}
		shown = quote(v)
		if f.kind == kindSecret {
			shown = fmt.Sprintf("of %d bytes", len(v))
		}
	}
	if fine {
		return ""
	}
	return fmt.Sprintf("is %s, want %s", shown, f.want())
}

// durationText writes a duration without the zeros that Duration.String ends with.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// maxShown bounds how much of a wrong text a message repeats.
const maxShown = 64

func quote(s string) string {
	if len(s) > maxShown {
		return strconv.Quote(s[:maxShown]) + "..."
	}
	return strconv.Quote(s)
}

// orList joins words: "a", "a or b", "one of a, b, c".
func orList(words []string) string {
	switch len(words) {
	case 0:
		return "nothing"
	case 1:
		return words[0]
	case 2:
		return words[0] + " or " + words[1]
	}
	return "one of " + strings.Join(words, ", ")
}
