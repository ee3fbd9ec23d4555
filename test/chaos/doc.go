// Package chaos breaks the rate limiter's Redis, and what lies between, in every way that it knows, and
// holds what callers were told to what was spent. The package has tests only.
//
// # The comparison
//
// A ledger notes each evaluation with its key, its cost and its outcome. The server appends every write
// to a file before it answers (appendfsync always), and that file is read at the end. For each key, in
// sums of cost:
//
//	allowed <= spent <= allowed + indeterminate + incompatible
//
// and write for write: each admission is one write of its cost, after which remained what the caller was
// told, and every other write is the cost of an evaluation of which nobody was told more than that it is
// not known. So a denial and an unavailability spend nothing. The state that the file leaves must be the
// server's. The policies let nothing come back while a test runs: windows last 100 years, refills days.
//
// # Faults
//
// A proxy of this package knows where commands and replies begin and end, and so can delay, cut, lose,
// reset, hold or replace one of them, and count how often each command reached the server. What needs no
// such knowledge (latency, bandwidth, a limit of bytes, a reset, a timeout) is also done by
// github.com/Shopify/toxiproxy as a library: a proxy of its own for each fault, since the library can wait
// for ever where a fault is added to a connection that another fault has ended; what it leaves waiting
// there is no leak of ours. The server is killed, paused,
// restarted with a slow start, demoted, filled up, kept from persisting, kept busy, locked, set back in
// time. Two words of refusal cannot be made for real, since programs touch one key (TRYAGAIN,
// CROSSSLOT), and two come to a command only where another server than ours decides so (NOAUTH,
// WRONGPASS): there the proxy answers in the server's place.
//
// # Runs
//
//	go test ./test/chaos                                   every fault once, some seconds each part
//	go test ./test/chaos -args -seed 7                     the faults of a seed again
//	go test ./test/chaos -args -seed 7 -only kill,pause    of them these
//	go test ./test/chaos -timeout 1h -args -duration 10m   rounds of all faults for 10 minutes, and the bounds in time
//	go test ./test/chaos -run TestSchedule -args -break retry
//
// The last one breaks a rule of the product on purpose (retry, allow or mixup) and so fails;
// TestSuiteFindsBrokenRules does that in processes of its own. A failure of the schedule prints its seed.
// Nothing is concluded from how fast something was, but in a run with -duration.
//
// What callers see in each fault stands in docs/failure-modes.md.
package chaos
