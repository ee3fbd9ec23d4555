package edge

import (
	"errors"
	"fmt"
)

// Style is a family of header fields that tell a client of its limit.
type Style uint8

// The styles. The zero value is invalid.
const (
	StyleInvalid Style = iota
	// StyleDraft12 is RateLimit-Policy and RateLimit of draft-ietf-httpapi-ratelimit-headers-12, whose
	// parameters of RateLimit are a (available) and w (effective window).
	StyleDraft12
	// StyleDraft11 is the same of its revisions 08 to 11, whose parameters of RateLimit are r and t.
	// Together with StyleDraft12 both pairs stand in one item: each revision ignores what it does not know.
	StyleDraft11
	// StyleRateLimit is RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset in seconds from now.
	StyleRateLimit
	// StyleXRateLimit is X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset in seconds of
	// the Unix epoch.
	StyleXRateLimit
)

var styleWords = []string{"INVALID", "draft-12", "draft-11", "ratelimit", "x-ratelimit"}

// String gives the style's word, as configuration spells it.
func (s Style) String() string { return wordOf(styleWords, uint8(s)) }

// Styles lists all styles.
func Styles() []Style { return []Style{StyleDraft12, StyleDraft11, StyleRateLimit, StyleXRateLimit} }

// DefaultStyles are the fields of the current draft in a form that clients of its earlier revisions
// understand too.
func DefaultStyles() []Style { return []Style{StyleDraft12, StyleDraft11} }

// ParseStyle reads a style's word.
func ParseStyle(word string) (Style, error) {
	for _, s := range Styles() {
		if s.String() == word {
			return s, nil
		}
	}
	return StyleInvalid, fmt.Errorf("%q is no style of headers, want one of %v", word, styleWords[1:])
}

// styles is a set of styles.
type styles [StyleXRateLimit + 1]bool

func newStyles(list []Style) (styles, error) {
	var set styles
	for _, s := range list {
		switch {
		case s == StyleInvalid || int(s) >= len(styleWords):
			return set, errors.New("field Headers has a style that there is not")
		case set[s]:
			return set, fmt.Errorf("field Headers has the style %v twice", s)
		}
		set[s] = true
	}
	return set, nil
}
