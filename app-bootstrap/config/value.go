package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A source of values is strict or textual.
//
// A file is strict: YAML tells numbers from texts, so a text where a number is meant is a mistake.
// Environment variables and flags are texts only; a host's koanf may hold such texts, and whole
// floats, which is what JSON numbers become. These are textual: a text that can be read in exactly
// one way is taken.
type strictness bool

const (
	strict  strictness = false
	textual strictness = true
)

var (
	errType     = errors.New("type")
	decimal     = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,18})$`)
	bareDecimal = regexp.MustCompile(`^[+-]?[0-9.]+$`)
)

const maxExactFloat = 1 << 53

// parse gives the typed value of a field. Where the type is wrong it gives what is wrong.
func (f *field) parse(value any, how strictness) (any, string) {
	var typed any
	var err error
	switch f.kind {
	case kindText, kindWord, kindFile, kindSecret:
		text, ok := value.(string)
		if !ok {
			err = errType
		}
		typed = text
	case kindInteger:
		typed, err = parseInteger(value, how)
	case kindBoolean:
		typed, err = parseBoolean(value, how)
	case kindDuration:
		typed, err = parseDuration(value)
	case kindList:
		typed, err = parseList(value, how)
	case kindInvalid:
		err = errType
	}
	if err == nil {
		return typed, ""
	}
	shown := describe(value)
	if f.kind == kindSecret {
		shown = describeType(value)
	}
	if _, several := value.([]any); several && f.kind == kindList {
		shown = "a list of other things than texts"
	}
	hint := ""
	switch value.(type) {
	case nil, string, map[string]any, []any:
	default:
		if _, isText := any(typed).(string); isText {
			hint = " (quotes make it a text)"
		}
	}
	return nil, fmt.Sprintf("is %s, want %s%s", shown, f.want(), hint)
}

func parseInteger(value any, how strictness) (int64, error) {
	switch v := value.(type) {
	case int:
		return int64(v), nil
	case int8:
		return int64(v), nil
	case int16:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case int64:
		return v, nil
	case uint:
		return parseInteger(uint64(v), how)
	case uint8:
		return int64(v), nil
	case uint16:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), nil
		}
	case float64:
		if how == textual && v == math.Trunc(v) && math.Abs(v) < maxExactFloat {
			return int64(v), nil
		}
	case string:
		if how == textual && decimal.MatchString(v) {
			return strconv.ParseInt(v, 10, 64)
		}
	}
	return 0, errType
}

func parseBoolean(value any, how strictness) (bool, error) {
	switch v := value.(type) {
	case bool:
		return v, nil
	case string:
		if how == textual && (v == "true" || v == "false") {
			return v == "true", nil
		}
	}
	return false, errType
}

// parseList takes lists of texts, and where there are texts only one text with commas between.
func parseList(value any, how strictness) ([]string, error) {
	switch v := value.(type) {
	case []string:
		return v, nil
	case []any:
		list := make([]string, 0, len(v))
		for _, element := range v {
			text, ok := element.(string)
			if !ok {
				return nil, errType
			}
			list = append(list, text)
		}
		return list, nil
	case string:
		if how != textual {
			break
		}
		list := []string{}
		if v == "" {
			return list, nil
		}
		for element := range strings.SplitSeq(v, ",") {
			list = append(list, strings.TrimSpace(element))
		}
		return list, nil
	}
	return nil, errType
}

// parseDuration takes texts with a unit and, from Go code, durations. A bare number is refused even
// where it is zero: 5 would be five nanoseconds.
func parseDuration(value any) (time.Duration, error) {
	switch v := value.(type) {
	case time.Duration:
		return v, nil
	case string:
		if !bareDecimal.MatchString(v) {
			return time.ParseDuration(v)
		}
	}
	return 0, errType
}

// describe shows a value of the wrong type.
func describe(value any) string {
	switch v := value.(type) {
	case string:
		return quote(v)
	case float64:
		if v == math.Trunc(v) {
			return fmt.Sprintf("%v, written as a fraction or with an exponent", v)
		}
		return fmt.Sprint(v)
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32:
		return fmt.Sprint(v)
	default:
		return describeType(value)
	}
}

// describeType says what a value is, not what it holds.
func describeType(value any) string {
	switch value.(type) {
	case nil:
		return "empty"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		return "a number"
	case map[string]any:
		return "a mapping"
	case []any, []string, []int:
		return "a list"
	case time.Time:
		return "a timestamp"
	default:
		return fmt.Sprintf("a %T", value)
	}
}
