// Package doors tests forward-auth with the proxies that people run: nginx and Caddy of Debian's
// packages are started with the very files of docs/examples, in front of a small application and of a
// real `edgelimit serve`, over memory and over a real Redis that is then stopped.
//
// Tests that need these programs have the build tag doors, since not every machine has them:
//
//	go test -tags doors ./test/doors
//
// A program that is missing fails the test with the line that installs it. Everything listens on
// loopback and ends with its test, also after a panic.
package doors
