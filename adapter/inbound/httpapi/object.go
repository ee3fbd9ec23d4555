package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxExactInteger is 2^53-1: every JSON implementation holds integers up to it exactly.
const maxExactInteger = 1<<53 - 1

// bodyError says why a body is not of the shape it must have, or why a value is out of range. Its
// detail holds nothing of the body's text.
type bodyError struct {
	code   string
	field  string
	detail string
}

func (e *bodyError) Error() string { return e.code + " " + e.field + ": " + e.detail }

// value is a member of an object: a string or an integer.
type value struct {
	isString bool
	text     string
	number   int64
}

// kind is the type that a member must have.
type kind uint8

const (
	kindInvalid kind = iota
	kindString
	kindInteger
)

// parseObject reads one flat JSON object with the given members, all of them optional. It is stricter
// than encoding/json, which takes names in any case, keeps the last of two, reads 1.0 where an integer
// is meant and puts a replacement character where the text is broken; two subjects could then become
// one.
func parseObject(body []byte, members map[string]kind) (map[string]value, *bodyError) {
	if !utf8.Valid(body) {
		return nil, malformed("the body is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		return nil, syntaxFault(err)
	}
	if token != json.Delim('{') {
		return nil, malformed("the body is not a JSON object")
	}
	object := make(map[string]value, len(members))
	for d.More() {
		name, err := stringToken(d, body)
		if err != nil {
			return nil, err
		}
		want, known := members[name]
		if !known {
			return nil, unknownField(name)
		}
		if _, twice := object[name]; twice {
			return nil, &bodyError{code: codeRepeatedField, field: name, detail: "is there twice"}
		}
		member, err := valueToken(d, body, name, want)
		if err != nil {
			return nil, err
		}
		object[name] = member
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, syntaxFault(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, malformed("something follows the object")
	}
	return object, nil
}

// stringToken reads a member's name.
func stringToken(d *json.Decoder, body []byte) (string, *bodyError) {
	start := d.InputOffset()
	token, err := d.Token()
	if err != nil {
		return "", syntaxFault(err)
	}
	name, ok := token.(string)
	if !ok || hasLoneSurrogate(body[start:d.InputOffset()]) {
		return "", malformed("a name in the object is not valid text")
	}
	return name, nil
}

// valueToken reads a member's value.
func valueToken(d *json.Decoder, body []byte, name string, want kind) (value, *bodyError) {
	start := d.InputOffset()
	token, err := d.Token()
	if err != nil {
		return value{}, syntaxFault(err)
	}
	wrong := func(detail string) (value, *bodyError) {
		return value{}, &bodyError{code: codeWrongType, field: name, detail: detail}
	}
	if want == kindString {
		text, ok := token.(string)
		if !ok {
			return wrong("must be a string")
		}
		if hasLoneSurrogate(body[start:d.InputOffset()]) {
			return wrong("must be a string of whole Unicode characters; an escaped surrogate stands alone")
		}
		return value{isString: true, text: text}, nil
	}
	number, ok := token.(json.Number)
	if !ok {
		return wrong("must be an integer")
	}
	for i, c := range []byte(number.String()) {
		if (c < '0' || c > '9') && (i > 0 || c != '-') {
			return wrong("must be an integer, written without fraction and exponent")
		}
	}
	n, parseErr := strconv.ParseInt(number.String(), 10, 64)
	if parseErr != nil || n > maxExactInteger || n < -maxExactInteger {
		return value{}, &bodyError{code: codeOutOfRange, field: name, detail: fmt.Sprintf("is beyond %d", int64(maxExactInteger))}
	}
	return value{number: n}, nil
}

func malformed(detail string) *bodyError {
	return &bodyError{code: codeMalformed, detail: detail}
}

// syntaxFault gives the place of a fault. The decoder's own text would repeat a piece of the body.
func syntaxFault(err error) *bodyError {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset > 0 {
		return malformed(fmt.Sprintf("the body is not JSON (near byte %d)", syntax.Offset))
	}
	return malformed("the body is not a whole JSON object")
}

// unknownField names a field that there is not, where its name looks like one. Anything else may be
// a value that lost its place, a subject perhaps, and is not repeated.
func unknownField(name string) *bodyError {
	e := &bodyError{code: codeUnknownField, detail: "there is no such field"}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-' {
			return e
		}
	}
	if len(name) <= 32 {
		e.field = name
	}
	return e
}

// hasLoneSurrogate reports whether a raw JSON string escapes half of a surrogate pair.
func hasLoneSurrogate(raw []byte) bool {
	high := false // the escape just before was a high surrogate
	for i := 0; i < len(raw); i++ {
		isLow := false
		isHigh := false
		if raw[i] == '\\' && i+1 < len(raw) {
			i++
			if raw[i] == 'u' && i+4 < len(raw) {
				unit, err := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16)
				i += 4
				isHigh = err == nil && unit >= 0xD800 && unit < 0xDC00
				isLow = err == nil && unit >= 0xDC00 && unit < 0xE000
			}
		}
		if high != isLow {
			return true
		}
		high = isHigh
	}
	return high
}
