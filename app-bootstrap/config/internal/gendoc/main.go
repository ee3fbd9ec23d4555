// Command gendoc writes docs/configuration.md from the tables that decoding uses. Run it with
// go generate in app-bootstrap/config.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
)

func main() {
	example := flag.String("example", "", "the complete configuration that the page shows")
	out := flag.String("out", "", "the page")
	flag.Parse()
	if err := run(*example, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

func run(example, out string) error {
	sample, err := os.ReadFile(example)
	if err != nil {
		return err
	}
	return os.WriteFile(out, render(config.Reference(), string(sample)), 0o644) //nolint:gosec // G306: a public page.
}
