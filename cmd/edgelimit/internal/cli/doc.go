// Package cli is the command line of edgelimit: what is asked, in flags and arguments, and what is
// answered, in text, JSON and exit codes.
//
// [Run] is the whole program but for the process, so that tests run it as people do.
//
// # Exit codes
//
//	0  done; of check: allowed
//	1  anything that the others are not
//	2  usage: unknown commands and flags, arguments, and configurations with faults
//	3  check: denied
//	4  check and replay: unavailable or indeterminate
//	5  check and replay: incompatible
//
// # What it is not
//
// It decides nothing and composes nothing: app-bootstrap does. It never ends the process.
//
// # Signals
//
// While Run runs, the first SIGINT or SIGTERM ends the command in order: serve lets requests in
// flight end, replay removes the keys of its simulation. A second one ends the process.
package cli
