package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong.
type Fault struct {
	// Path is the key's path, or for a file that cannot be read its name and line.
	Path string
	// Problem says what is wrong and what is allowed. It holds no secret.
	Problem string
}

// String gives path and problem.
func (f Fault) String() string { return f.Path + ": " + f.Problem }

// Error is everything that is wrong with a configuration, sorted by path.
type Error struct {
	Faults []Fault
}

// Error gives one line for each fault after a first line that counts them.
func (e *Error) Error() string {
	var b strings.Builder
	if len(e.Faults) == 1 {
		b.WriteString("configuration: 1 fault")
	} else {
		fmt.Fprintf(&b, "configuration: %d faults", len(e.Faults))
	}
	for _, f := range e.Faults {
		b.WriteString("\n  ")
		b.WriteString(f.String())
	}
	return b.String()
}

// report collects faults.
type report struct {
	faults []Fault
	// origins says of a path which environment variable or flag gave its value.
	origins map[string]string
}

func (r *report) add(path, format string, args ...any) {
	r.faults = append(r.faults, Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
}

func (r *report) has(path string) bool {
	return slices.ContainsFunc(r.faults, func(f Fault) bool { return f.Path == path })
}

// err gives nil where nothing is wrong.
func (r *report) err() error {
	if len(r.faults) == 0 {
		return nil
	}
	faults := slices.Clone(r.faults)
	for i, f := range faults {
		if origin := r.origins[f.Path]; origin != "" {
			faults[i].Problem += " (given by " + origin + ")"
		}
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Problem, b.Problem))
	})
	return &Error{Faults: slices.Compact(faults)}
}
