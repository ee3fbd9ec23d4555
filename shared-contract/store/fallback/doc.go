// Package fallback is a decorator of store.Store that serves from a second store while the first one
// is unreachable. Somebody must put it together on purpose: nothing in app-bootstrap does, and
// app.rate-limit never gets one.
//
// # What counts as unreachable
//
// A failure by which the primary says, or this process knows, that nobody there serves now: no
// connection, no free one, no answer to the greeting, a server that loads, that was demoted, or whose
// cluster is down. See [Config.ServeUncertain] for calls of which it is not known whether they ran.
// What says that the call is wrong, that this user may not, or that the server guards its data (full,
// cannot persist) is told to the caller: it does not go away by asking elsewhere, and a limit that is
// served from elsewhere meanwhile would hide it. [Unreachable] is the whole table.
//
// # What it costs
//
// The two stores share nothing. While the secondary serves, its state begins where it stood when it
// served last; when the primary is back, what was counted meanwhile is not in it. A limit is therefore
// spent twice around each switch: with a secondary in each of N processes, up to N+1 times in the worst
// case. A lock, or a value that must not be seen twice, does not belong behind this decorator.
//
// Source and Clock are those of the primary. A caller who must know which store served a call passes a
// context with a [Mark].
//
// # How it returns
//
// After a hold-off, one of the callers asks the primary first: a ping within Config.ProbeTimeout, then
// the call itself. If both are answered the primary serves again; if not, the secondary serves that
// call too and the hold-off begins anew. There is no goroutine. Every switch is reported once.
//
// # Concurrency
//
// All methods are safe for concurrent use. One call at a time probes; others do not wait for it.
package fallback
