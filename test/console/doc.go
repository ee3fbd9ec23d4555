// Package console holds documents to what their commands print: it reads the console blocks of a
// Markdown file, and compares what a command printed with what the document shows.
//
// A line of such a block that begins with "$ " is a command, and the lines below it are its output; a
// lone "…" stands for any. How a command is run is the test's own: [Curl] is there for those that call
// the service, so that tests need no curl.
//
// Functions that take a testing.TB report through it. Nothing here keeps state, and all of it is safe
// for concurrent use. It is for tests alone.
package console
