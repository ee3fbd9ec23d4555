package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Entry describes one key.
type Entry struct {
	Path        string // with <id> for a policy's ID
	Type        string
	Default     string // in words where there is none: "required ...", "none"
	Range       string
	Description string
}

// Reference describes every key, in the order in which people write them. It is made of the tables
// that decoding uses.
func Reference() []Entry {
	entries := make([]Entry, 0, len(allFields))
	for _, f := range allFields {
		entries = append(entries, Entry{
			Path: f.path, Type: f.kind.String(), Default: f.defaultText(), Range: f.span(), Description: f.about,
		})
	}
	return entries
}

func (f *field) defaultText() string {
	if f.required != "" {
		return "required " + f.required
	}
	switch v := f.def.(type) {
	case time.Duration:
		return durationText(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case []string:
		if len(v) == 0 {
			return "none"
		}
		return strings.Join(v, ", ")
	case string:
		if v == "" {
			return "none"
		}
		return v
	default:
		return fmt.Sprint(v)
	}
}
