package store

import "fmt"

// MaxReplyValues bounds the number of values in a program's reply.
const MaxReplyValues = 8

// MaxTextBytes bounds a stored value, and a text in a program's reply.
const MaxTextBytes = 512 << 10

// ValueKind is the type of a reply value. The zero value means that there is none.
type ValueKind uint8

const (
	// ValueNone is the zero value: no such position, or a kind that no program may answer.
	ValueNone ValueKind = iota
	// ValueNil is an absent value.
	ValueNil
	// ValueInteger is a 64-bit integer.
	ValueInteger
	// ValueText is a text, whether sent as a simple or as a bulk string.
	ValueText
)

// Value is one value of a reply.
type Value struct {
	Kind ValueKind
	Int  int64  // where Kind is ValueInteger
	Text string // where Kind is ValueText
}

// Integer makes an integer value.
func Integer(n int64) Value { return Value{Kind: ValueInteger, Int: n} }

// Text makes a text value.
func Text(s string) Value { return Value{Kind: ValueText, Text: s} }

// Nil makes an absent value.
func Nil() Value { return Value{Kind: ValueNil} }

// Reply is what a program answered: 0 to MaxReplyValues values. It is a value, not a slice, so that
// the path of one decision needs no allocation for it.
type Reply struct {
	n      int
	values [MaxReplyValues]Value
}

// NewReply makes a reply; it fails where there are more than MaxReplyValues values.
func NewReply(values ...Value) (Reply, error) {
	var r Reply
	for _, v := range values {
		if !r.Append(v) {
			return Reply{}, fmt.Errorf("store: reply of %d values, at most %d", len(values), MaxReplyValues)
		}
	}
	return r, nil
}

// Append adds a value and reports whether there was room for it.
func (r *Reply) Append(v Value) bool {
	if r.n == MaxReplyValues {
		return false
	}
	r.values[r.n] = v
	r.n++
	return true
}

// Len is the number of values.
func (r *Reply) Len() int { return r.n }

// At is the value at position i, or the zero Value where there is none.
func (r *Reply) At(i int) Value {
	if i < 0 || i >= r.n {
		return Value{}
	}
	return r.values[i]
}
