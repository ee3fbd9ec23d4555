package store

import "fmt"

// FieldKind is the type of a program's argument or reply field on the wire.
type FieldKind uint8

const (
	// FieldInvalid is the invalid zero value.
	FieldInvalid FieldKind = iota
	// FieldInteger is an integer: a decimal argument, an integer reply.
	FieldInteger
	// FieldText is a text; where Words is set, one of those.
	FieldText
)

// Field describes one argument or reply field of a program.
type Field struct {
	Name string
	Kind FieldKind
	Unit string   // of an integer: ms, units, tokens; of a text: id, or empty
	Min  int64    // least integer, or least length of a text in bytes
	Max  int64    // greatest integer, or greatest length of a text in bytes
	Word []string // closed set of words, where it is one
}

// Program describes a named, versioned, atomic program: what a caller passes and what it answers.
// A Store finds the implementation by ID. Programs are made once and not changed afterwards.
type Program struct {
	Name    string
	Version int
	Keys    int
	Args    []Field
	Reply   []Field
}

// ID is name and version as file names carry them, such as "rate-fixed-window-v1".
func (p *Program) ID() string { return fmt.Sprintf("%s-v%d", p.Name, p.Version) }
