// Package accesslog reads the access logs of web servers in common and combined log format, plain or
// gzip, and puts lines that are out of order into order within a stated bound.
//
//	host ident user [time] "request" status bytes
//	host ident user [time] "request" status bytes "referrer" "user agent"
//
// [Parse] reads one line, [Reader] the lines of a stream, [Sorted] one stream in the order of time,
// and [Merge] several of them as one.
//
// # What it is not
//
// It is no general log parser: a line of another shape is an [Unparsed], with a reason, and the
// caller decides what that means. It interprets no field but the time, the status and the number of
// bytes.
//
// # Bounds
//
// A line is at most [MaxLineBytes] long; a longer one is unparsed, and its rest is skipped without
// being held. A time is in 1 ms..2^42 ms after the Unix epoch. [Sorted] holds no more items than its
// bounds say.
//
// # Concurrency
//
// Readers are for one goroutine. Parse is a pure function.
package accesslog
