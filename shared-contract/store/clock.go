package store

// ClockSource says whose clock programs decide by.
type ClockSource uint8

const (
	// ClockInvalid is the invalid zero value.
	ClockInvalid ClockSource = iota
	// ClockServer is the store's own clock, the only one that enforcement uses.
	ClockServer
	// ClockCaller is a clock given by the caller, for simulation and tests. Keys under it are of a
	// kind of their own and their state says so.
	ClockCaller
)

// ClockArgument is the name of the argument that a Store fills in: 0 for its own clock, else the
// caller's in ms. What a caller of Eval passes in its place is ignored.
const ClockArgument = "clock"

// ClockIndex is the position of the clock argument, or -1 where the program has none.
func (p *Program) ClockIndex() int {
	for i := range p.Args {
		if p.Args[i].Name == ClockArgument {
			return i
		}
	}
	return -1
}
