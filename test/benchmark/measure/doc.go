// Package measure drives one contender under one load and says what it did: how many decisions in
// what time, at what latency, and with how many allocations.
//
// The unit is a cell: one contender, one kind of decision, so many callers and so many keys, driven
// for a fixed time after a warm-up that is not counted. Cells of one round follow each other, so that
// what a machine does meanwhile strikes all contenders alike; what is published of several rounds is
// a median. Each caller asks again as soon as it was answered, for a key that a generator of its own
// chooses evenly.
//
// Latencies go into one histogram for each caller (HdrHistogram, two significant digits, so within
// one percent), and are merged afterwards. Allocations are those of the whole process while the cell
// runs, divided by its decisions; the driver itself makes none per decision.
package measure
