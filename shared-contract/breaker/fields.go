package breaker

import (
	"fmt"
	"strconv"
	"strings"
)

// The fields in which programs store a breaker: m identity, l last observed ms, s state, o since ms,
// f consecutive failures, k successful probes, p1.. one for each probe (expiry:token, or -), b1.. one
// for each bucket (id:calls:failures, or -).
//
// Every field is always there, and every number is in its shortest form, so a state has exactly one
// text.

// noValue stands for the zero value of a probe or a bucket.
const noValue = "-"

// fixedFields are those before probes and buckets.
var fixedFields = []string{"m", "l", "s", "o", "f", "k"}

// FieldNames lists the fields of a state in order.
func (m Machine) FieldNames() []string {
	names := append([]string(nil), fixedFields...)
	for i := range m.MaxProbes {
		names = append(names, fmt.Sprintf("p%d", i+1))
	}
	for i := range m.Buckets {
		names = append(names, fmt.Sprintf("b%d", i+1))
	}
	return names
}

// Fields writes a state that is present as the texts of FieldNames.
func (m Machine) Fields(identity string, s Stored) []string {
	texts := []string{
		identity, strconv.FormatInt(s.LastObserved, 10), s.State.String(), strconv.FormatInt(s.Since, 10),
		strconv.FormatInt(s.Failures, 10), strconv.FormatInt(s.Successes, 10),
	}
	for _, p := range s.Probes[:m.MaxProbes] {
		text := noValue
		if p != (Probe{}) {
			text = fmt.Sprintf("%d:%s", p.ExpiresAt, p.Token)
		}
		texts = append(texts, text)
	}
	for _, b := range s.Ring[:m.Buckets] {
		text := noValue
		if b != (Bucket{}) {
			text = fmt.Sprintf("%d:%d:%d", b.ID, b.Calls, b.Failures)
		}
		texts = append(texts, text)
	}
	return texts
}

// ParseFields is the inverse of Fields for a state of this identity. It reports false for texts that
// no state of this machine has.
func (m Machine) ParseFields(identity string, texts []string) (Stored, bool) {
	if len(texts) != len(fixedFields)+int(m.MaxProbes+m.Buckets) || texts[0] != identity {
		return Stored{}, false
	}
	s, ok := Stored{Present: true}, true
	number := func(text string) int64 {
		n, fine := shortest(text)
		ok = ok && fine
		return n
	}
	s.LastObserved, s.Since = number(texts[1]), number(texts[3])
	s.Failures, s.Successes = number(texts[4]), number(texts[5])
	state, fine := ParseState(texts[2])
	s.State, ok = state, ok && fine
	rest := texts[len(fixedFields):]
	for i, text := range rest[:m.MaxProbes] {
		if text != noValue {
			expiry, token, _ := strings.Cut(text, ":")
			s.Probes[i] = Probe{ExpiresAt: number(expiry), Token: token}
			ok = ok && s.Probes[i].ExpiresAt > 0
		}
	}
	for i, text := range rest[m.MaxProbes:] {
		if text != noValue {
			id, counts, _ := strings.Cut(text, ":")
			calls, failures, _ := strings.Cut(counts, ":")
			s.Ring[i] = Bucket{ID: number(id), Calls: number(calls), Failures: number(failures)}
			ok = ok && s.Ring[i].Calls > 0
		}
	}
	if !ok || !m.Valid(s) {
		return Stored{}, false
	}
	return s, true
}

// shortest reads a decimal of 1..16 digits in its shortest form, up to 2^53-1.
func shortest(text string) (int64, bool) {
	if text == "" || len(text) > 16 || len(text) > 1 && text[0] == '0' {
		return 0, false
	}
	n := int64(0)
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = 10*n + int64(text[i]-'0')
	}
	return n, n <= maxExact
}
