package rules

import (
	"strings"
	"time"
)

// Unit is a rule's unit of time. Windows of a unit begin at multiples of it since the Unix epoch.
type Unit uint8

// The units. The zero value is invalid.
const (
	UnitInvalid Unit = iota
	UnitSecond
	UnitMinute
	UnitHour
	UnitDay
	UnitWeek  // 7 days
	UnitMonth // 30 days
	UnitYear  // 365 days
)

const day = 24 * time.Hour

var units = []struct {
	word   string
	length time.Duration
}{
	{"INVALID", 0},
	{"second", time.Second},
	{"minute", time.Minute},
	{"hour", time.Hour},
	{"day", day},
	{"week", 7 * day},
	{"month", 30 * day},
	{"year", 365 * day},
}

// String gives the unit's word as the rules spell it.
func (u Unit) String() string {
	if int(u) >= len(units) {
		return units[0].word
	}
	return units[u].word
}

// Duration is the unit's length, 0 for an invalid one.
func (u Unit) Duration() time.Duration {
	if int(u) >= len(units) {
		return 0
	}
	return units[u].length
}

// parseUnit reads a word in any case, UnitInvalid where it is none.
func parseUnit(word string) Unit {
	for u := UnitSecond; int(u) < len(units); u++ {
		if strings.EqualFold(word, units[u].word) {
			return u
		}
	}
	return UnitInvalid
}
