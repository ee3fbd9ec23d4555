package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a file of rules.
type Fault struct {
	File string
	Line int // counted from 1; 0 where no line is at fault
	// Path is the place in the document, such as descriptors[0].rate_limit.unit; "" is the whole file.
	Path    string
	Problem string
}

// String gives file, line, path and problem.
func (f Fault) String() string { return place(f.File, f.Line, f.Path) + ": " + f.Problem }

// Note is something that a file says and that has no effect here, or another one.
type Note struct {
	File string
	Line int
	Path string
	Text string
}

// String gives file, line, path and text.
func (n Note) String() string { return place(n.File, n.Line, n.Path) + ": " + n.Text }

func place(file string, line int, path string) string {
	if line > 0 {
		file = fmt.Sprintf("%s:%d", file, line)
	}
	if path == "" {
		return file
	}
	return file + ": " + path
}

// Error is everything that is wrong with the files, in the order of files and lines.
type Error struct {
	Faults []Fault
}

// Error gives one line for each fault after a first line that counts them.
func (e *Error) Error() string {
	var b strings.Builder
	if len(e.Faults) == 1 {
		b.WriteString("rules: 1 fault")
	} else {
		fmt.Fprintf(&b, "rules: %d faults", len(e.Faults))
	}
	for _, f := range e.Faults {
		b.WriteString("\n  ")
		b.WriteString(f.String())
	}
	return b.String()
}

// report collects faults and notes.
type report struct {
	faults []Fault
	notes  []Note
}

func (r *report) err() error {
	if len(r.faults) == 0 {
		return nil
	}
	faults := slices.Clone(r.faults)
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Problem, b.Problem))
	})
	return &Error{Faults: slices.Compact(faults)}
}
