package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/edgelimit/edgelimit/test/benchmark/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called.
	}
}

// usage names the subcommands.
const usage = "usage: benchmark compare|scale|doors|render [flags]; benchmark compare -h lists them"

// options are what flags say.
type options struct {
	command  string
	short    bool
	rounds   int
	duration time.Duration
	warmUp   time.Duration
	keys     int
	pool     int
	most     int // keys of a scale run
	only     *regexp.Regexp
	json     string
	root     string
	profile  bool
	page     bool
	own      string // the programs of doors
	peer     string
}

// What a run takes when flags do not say: the short form, and the full one.
const (
	shortSeconds = 0.5
	fullSeconds  = 2.0
	shortMost    = 1_000_000
	fullMost     = 10_000_000
)

func run(ctx context.Context, args []string, out, log io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	o, err := parse(args, log)
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	switch o.command {
	case "compare":
		return compare(ctx, o, out, log)
	case "scale":
		return scale(ctx, o, out, log)
	case "doors":
		return compareDoors(ctx, o, out, log)
	case "render":
		return render(o, out)
	}
	return fmt.Errorf("no subcommand %q; %s", o.command, usage)
}

// parse reads the subcommand and its flags.
func parse(args []string, log io.Writer) (*options, error) {
	o := &options{command: args[0]}
	flags := flag.NewFlagSet("benchmark "+o.command, flag.ContinueOnError)
	flags.SetOutput(log)
	var only string
	var perCell float64
	flags.BoolVar(&o.short, "short", false, "the short form: shorter cells, denials at 64 callers alone, fewer keys in scale")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds, of which medians are taken")
	flags.Float64Var(&perCell, "seconds", 0, "seconds of each cell; 0 means 0.5 in the short form and 2 otherwise. A quarter of it is added to warm up")
	flags.IntVar(&o.keys, "keys", 1000, "keys over Redis")
	flags.IntVar(&o.pool, "pool", 16, "connections of each client")
	flags.IntVar(&o.most, "most", 0, "most keys of a scale run; 0 means 1,000,000 in the short form and 10,000,000 otherwise")
	flags.StringVar(&only, "only", "", "regular expression: run these contenders alone, and write no page")
	flags.StringVar(&o.json, "json", "", "write what was measured to this file too")
	flags.StringVar(&o.own, "own", "", "path of edgelimit, for doors")
	flags.StringVar(&o.peer, "peer", "", "path of envoyproxy/ratelimit, for doors")
	flags.StringVar(&o.root, "root", "", "root of the tree; empty means that which the working directory is in")
	flags.BoolVar(&o.page, "page", true, "write the page, the charts and the JSON beside them; never with -only")
	flags.BoolVar(&o.profile, "profile", true, "take CPU profiles after the rounds of compare")
	if err := flags.Parse(args[1:]); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	if perCell == 0 {
		perCell = fullSeconds
		if o.short {
			perCell = shortSeconds
		}
	}
	if o.most == 0 {
		o.most = fullMost
		if o.short {
			o.most = shortMost
		}
	}
	if !(perCell > 0 && perCell <= 600) || o.rounds < 1 || o.rounds > 100 || o.keys < 1 || o.keys > 1e7 || o.pool < 1 || o.pool > 4096 || o.most < 1000 || o.most > 1e8 {
		return nil, errors.New("out of range: rounds 1..100, seconds up to 600, keys 1..10,000,000, pool 1..4096, most 1,000..100,000,000")
	}
	o.duration = time.Duration(perCell * float64(time.Second))
	o.warmUp = o.duration / 4
	if only != "" {
		var err error
		if o.only, err = regexp.Compile(only); err != nil {
			return nil, fmt.Errorf("-only: %w", err)
		}
		o.page = false // A part of the contenders is no comparison to publish.
	}
	if o.root == "" {
		var err error
		if o.root, err = findRoot(); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// invocation is the command line that gives a run again, by the script that is in the tree.
func (o *options) invocation() string {
	words := []string{"test/scripts/benchmark.sh", o.command}
	if o.short {
		words = append(words, "-short")
	}
	words = append(words, "-rounds", fmt.Sprint(o.rounds), "-seconds", fmt.Sprintf("%g", o.duration.Seconds()), "-pool", fmt.Sprint(o.pool))
	switch o.command {
	case "scale":
		words = append(words, "-most", fmt.Sprint(o.most))
	default:
		words = append(words, "-keys", fmt.Sprint(o.keys))
	}
	if o.only != nil {
		words = append(words, "-only", "'"+o.only.String()+"'")
	}
	return strings.Join(words, " ")
}

// findRoot goes up from the working directory to the module of the library.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // G304: a fixed name.
		if err == nil && strings.HasPrefix(string(text), "module github.com/edgelimit/edgelimit\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory is not in the tree of edgelimit; see -root")
		}
		dir = parent
	}
}

// Where things are written, below the root.
func (o *options) pageFile() string    { return filepath.Join(o.root, "docs", "benchmarks.md") }
func (o *options) chartDir() string    { return filepath.Join(o.root, "docs", "benchmarks") }
func (o *options) compareFile() string { return filepath.Join(o.chartDir(), "compare.json") }
func (o *options) doorsFile() string   { return filepath.Join(o.chartDir(), "doors.json") }
func (o *options) scaleFile() string   { return filepath.Join(o.chartDir(), "scale.json") }

// render writes the page and the charts from what was saved.
func render(o *options, out io.Writer) error {
	comparison, err := report.LoadIfAny[report.Comparison](o.compareFile())
	if err != nil {
		return err
	}
	growth, err := report.LoadIfAny[report.Scale](o.scaleFile())
	if err != nil {
		return err
	}
	doors, err := report.LoadIfAny[report.Doors](o.doorsFile())
	if err != nil {
		return err
	}
	if err := report.WriteCharts(o.chartDir(), comparison, growth); err != nil {
		return err
	}
	if err := os.WriteFile(o.pageFile(), []byte(report.Page(comparison, growth, doors)), 0o644); err != nil { //nolint:gosec // G306: documentation is for everybody.
		return err
	}
	_, err = fmt.Fprintf(out, "wrote %s and the charts in %s\n", o.pageFile(), o.chartDir())
	return err
}

// save writes what was measured where it belongs.
func save[T report.Comparison | report.Scale | report.Doors](o *options, file string, measured *T) error {
	if o.json != "" {
		if err := report.Save(o.json, measured); err != nil {
			return err
		}
	}
	if !o.page {
		return nil
	}
	return report.Save(file, measured)
}

// cores is how many the benchmark may use.
func cores() int { return runtime.GOMAXPROCS(0) }
