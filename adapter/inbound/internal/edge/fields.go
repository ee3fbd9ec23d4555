package edge

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// The names of the fields, as net/http writes them.
const (
	nameRateLimit  = "Ratelimit"
	namePolicy     = "Ratelimit-Policy"
	nameLimit      = "Ratelimit-Limit"
	nameRemaining  = "Ratelimit-Remaining"
	nameReset      = "Ratelimit-Reset"
	nameXLimit     = "X-Ratelimit-Limit"
	nameXRemaining = "X-Ratelimit-Remaining"
	nameXReset     = "X-Ratelimit-Reset"
	// NameRetryAfter is in whole seconds, rounded up, at least 1.
	NameRetryAfter = "Retry-After"
	// NameShadow is the field of the shadow mode: the verdict as a token, with the policy.
	NameShadow = "Edgelimit-Shadow"
)

// maxFieldInteger is the greatest integer of structured fields (RFC 9651, 15 digits), below the 2^53-1
// of policies. A larger quota is shown as this one: a client never believes that it has more than it has.
const maxFieldInteger = 999_999_999_999_999

// MaxFields is the greatest number of fields of one answer.
const MaxFields = 10

// Field is one header field. Name is in net/http's canonical form.
type Field struct{ Name, Value string }

// IsList reports whether a field of this name may be there several times, once for each limit that a
// request passed.
func (f Field) IsList() bool { return f.Name == nameRateLimit || f.Name == namePolicy }

// Fields writes header fields for the policies that it was made for.
type Fields struct {
	styles   styles
	policies map[ratelimit.PolicyID]policyField
}

// policyField is what never changes in the fields of a policy.
type policyField struct {
	item   string        // the policy's name as a String of structured fields
	policy string        // the value of RateLimit-Policy
	reach  time.Duration // the greatest distance from now to a decision's ResetAt
}

// NewFields makes the fields of a policy set. No style gives no fields but Retry-After.
func NewFields(policies *ratelimit.PolicySet, list []Style) (*Fields, error) {
	set, err := newStyles(list)
	if err != nil {
		return nil, err
	}
	f := &Fields{styles: set, policies: make(map[ratelimit.PolicyID]policyField)}
	for _, p := range policies.All() {
		item, ok := nameItem(p.ID())
		if !ok {
			continue // a valid ID is always a String
		}
		window, reach := spans(p.Parameters())
		parameters := append([]byte(item), ";q="...)
		parameters = strconv.AppendInt(parameters, fieldInteger(p.Limit()), 10)
		parameters = append(parameters, ";w="...)
		parameters = strconv.AppendInt(parameters, max(1, fieldInteger(Seconds(window))), 10)
		f.policies[p.ID()] = policyField{item: item, policy: string(parameters), reach: reach}
	}
	return f, nil
}

// nameItem writes a policy's name as a String of structured fields, false where it cannot be one.
func nameItem(id ratelimit.PolicyID) (string, bool) {
	item, err := httpsfv.Marshal(httpsfv.NewItem(string(id)))
	return item, err == nil
}

// spans gives the window in which a policy's limit is allotted, which for a bucket is the time that it
// takes to fill, and the longest time after which the full limit is there.
func spans(parameters ratelimit.Parameters) (window, reach time.Duration) {
	switch p := parameters.(type) {
	case ratelimit.FixedWindowParameters:
		return p.Window, p.Window
	case ratelimit.SlidingWindowCounterParameters:
		return p.Window, 2 * p.Window
	case ratelimit.TokenBucketParameters:
		fill := fillTime(p.Capacity, p.RefillTokens, p.RefillPeriod)
		return fill, fill
	case ratelimit.GCRAParameters:
		fill := fillTime(p.Burst, p.Limit, p.Period)
		return fill, fill
	case ratelimit.SlidingWindowLogParameters:
		return p.Window, p.Window
	}
	return 0, 0
}

// fillTime is how long units take to come at a rate, rounded up to milliseconds. A policy's constructor
// holds it to 100 years.
func fillTime(units, rate int64, period time.Duration) time.Duration {
	high, low := bits.Mul64(uint64(units), uint64(period.Milliseconds())) //nolint:gosec // both are positive
	if high >= uint64(rate) {                                             //nolint:gosec // positive
		return 0
	}
	quotient, rest := bits.Div64(high, low, uint64(rate)) //nolint:gosec // positive
	if rest > 0 {
		quotient++
	}
	return time.Duration(quotient) * time.Millisecond //nolint:gosec // at most 100 years
}

// Seconds gives a duration in whole seconds, rounded up: nobody is told to come back too early.
func Seconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second) + 1
}

// RetrySeconds is Seconds, and at least 1: a Retry-After of 0 would invite an immediate retry.
func RetrySeconds(d time.Duration) int64 { return max(1, Seconds(d)) }

func fieldInteger(n int64) int64 { return min(max(n, 0), maxFieldInteger) }

// Append adds the fields of a report to dst: those of the styles where the limiter decided, and
// Retry-After where it says when to ask again. In shadow mode it is NameShadow alone. now is the
// moment of the answer, from which windows count.
func (f *Fields) Append(dst []Field, report Report, now time.Time) []Field {
	if report.Shadow {
		return f.appendShadow(dst, report)
	}
	var values strings.Builder
	w := fieldWriter{dst: dst, first: len(dst)}
	if evaluated, ok := report.Outcome.(ratelimit.Evaluated); ok {
		w = f.decision(w, &values, &evaluated.Decision, now)
	}
	if report.RetryAfter > 0 {
		w = w.integer(&values, NameRetryAfter, RetrySeconds(report.RetryAfter))
	}
	return w.done(values.String())
}

func (f *Fields) decision(w fieldWriter, values *strings.Builder, d *ratelimit.RateLimitDecision, now time.Time) fieldWriter {
	known, ok := f.policies[d.PolicyID]
	if !ok {
		// A limiter whose policies differ from those that the door was made with.
		known.item, ok = nameItem(d.PolicyID)
	}
	limit, remaining := fieldInteger(d.Limit), fieldInteger(d.Remaining)
	var window int64
	if d.Allowed {
		until := d.ResetAt.Sub(now)
		if known.reach > 0 {
			until = min(until, known.reach) // the store's clock and this one may differ
		}
		window = fieldInteger(Seconds(until))
	} else {
		// Not later than Retry-After, which counts from the store's clock and so needs no other.
		window = fieldInteger(RetrySeconds(d.RetryAfter))
	}
	values.Grow(usualBytes)
	draft12, draft11 := f.styles[StyleDraft12], f.styles[StyleDraft11]
	if ok && (draft12 || draft11) {
		if known.policy != "" {
			w = w.ready(values, namePolicy, known.policy)
		}
		values.WriteString(known.item)
		if draft12 {
			parameter(values, ";a=", remaining)
			parameter(values, ";w=", window)
		}
		if draft11 {
			parameter(values, ";r=", remaining)
			parameter(values, ";t=", window)
		}
		w = w.end(values, nameRateLimit)
	}
	if f.styles[StyleRateLimit] {
		w = w.integer(values, nameLimit, limit)
		w = w.integer(values, nameRemaining, remaining)
		w = w.integer(values, nameReset, window)
	}
	if f.styles[StyleXRateLimit] {
		w = w.integer(values, nameXLimit, limit)
		w = w.integer(values, nameXRemaining, remaining)
		w = w.integer(values, nameXReset, fieldInteger(epochSeconds(d.ResetAt)))
	}
	return w
}

// epochSeconds rounds up, as everything that says when.
func epochSeconds(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

// appendShadow writes the verdict that would have counted.
func (f *Fields) appendShadow(dst []Field, report Report) []Field {
	value := report.Verdict.String()
	item := f.policies[report.Policy].item
	if item != "" {
		value += ";policy=" + item
	}
	if report.RetryAfter > 0 {
		value += ";retry-after=" + strconv.FormatInt(fieldInteger(RetrySeconds(report.RetryAfter)), 10)
	}
	return append(dst, Field{Name: NameShadow, Value: value})
}

// fieldWriter keeps which part of the values is whose. All values are one string, and so one allocation.
// It is handed on by value and apart from the values, so that neither it nor dst leaves the stack.
type fieldWriter struct {
	dst   []Field
	first int            // the fields from here on are ours
	ends  [MaxFields]int // where the value of each ends, of a ready one where it would begin
}

// usualBytes is what the values of the default styles take, and a little more.
const usualBytes = 96

// ready adds a field whose value exists.
func (w fieldWriter) ready(values *strings.Builder, name, value string) fieldWriter {
	next := w
	next.ends[len(w.dst)-w.first] = values.Len()
	next.dst = append(w.dst, Field{Name: name, Value: value})
	return next
}

// end makes what was written since the last field the value of one.
func (w fieldWriter) end(values *strings.Builder, name string) fieldWriter {
	return w.ready(values, name, "")
}

// integer adds a field that is one number.
func (w fieldWriter) integer(values *strings.Builder, name string, value int64) fieldWriter {
	parameter(values, "", value)
	return w.end(values, name)
}

func parameter(values *strings.Builder, key string, value int64) {
	var scratch [20]byte
	values.WriteString(key)
	values.Write(strconv.AppendInt(scratch[:0], value, 10))
}

// done gives all fields, those without a value theirs.
func (w fieldWriter) done(all string) []Field {
	from := 0
	for i := w.first; i < len(w.dst); i++ {
		to := w.ends[i-w.first]
		if w.dst[i].Value == "" {
			w.dst[i].Value = all[from:to]
		}
		from = to
	}
	return w.dst
}
