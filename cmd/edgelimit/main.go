// Command edgelimit is the standalone program of the rate limiter: it serves the JSON API, asks for
// single evaluations, judges configurations, and replays access logs. docs/cli.md describes it.
package main

import (
	"os"

	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
