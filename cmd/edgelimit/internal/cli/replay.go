package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/edgelimit/edgelimit/app-bootstrap/composition"
	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/accesslog"
	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/replay"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// removeTimeout is how long the removal of a simulation's keys may take.
const removeTimeout = time.Minute

// replayFlags are the flags of replay.
type replayFlags struct {
	policies []string
	subject  string
	out      string
	window   time.Duration
	lines    int
	asJSON   bool
}

func (t *terminal) replay() *cobra.Command {
	command := &cobra.Command{
		Use:   "replay --config FILE [flags] LOG...",
		Short: "Say what policies would have decided of the requests in access logs",
		Long: `Read access logs in common or combined log format, evaluate each request at its logged time under
each policy, and say what came of it. A log is plain or gzip, whatever its name; - is the standard
input. Several logs are merged by time. Each request costs 1.

Lines out of order are sorted: a line may be earlier than one before it by --sort-window of log time,
and --sort-lines are held at most. A line that comes later than that is counted as late and not
evaluated. A line in neither format, or without the subject field, is counted and not evaluated.

On Redis, keys of a kind of their own are used, which no enforcement reads; they are removed at the
end, also after SIGINT. Digests are those of the configuration's secret.

Exit code 0: every request was evaluated, whether admitted or denied. 4: some were unavailable or
indeterminate. 5: some were incompatible. 2: usage. 1: a log cannot be read, none of its lines
parses, or the replay was interrupted.`,
		Args: usageArgs(cobra.MinimumNArgs(1)),
	}
	file := configFlag(command)
	var f replayFlags
	flags := command.Flags()
	flags.StringArrayVarP(&f.policies, "policy", "p", nil, "policy to evaluate; can be given several times (default: all)")
	flags.StringVar(&f.subject, "subject-field", "ip", "who is limited: ip, user, user-agent or path")
	flags.String("provider", "", "memory or redis, instead of "+keyProvider)
	flags.StringVarP(&f.out, "out", "o", "", "write one JSON object a line for each request and policy to this file")
	flags.DurationVar(&f.window, "sort-window", time.Hour, "log time by which lines may be out of order")
	flags.IntVar(&f.lines, "sort-lines", 1_000_000, "lines held at most to sort them")
	flags.BoolVar(&f.asJSON, "json", false, "print the summary as JSON")
	command.RunE = func(command *cobra.Command, logs []string) error {
		cfg, err := t.load(command, *file, map[string]string{"provider": keyProvider})
		if err != nil {
			return err
		}
		return t.runReplay(command.Context(), cfg.RateLimit, f, logs)
	}
	return command
}

func (t *terminal) runReplay(ctx context.Context, cfg config.RateLimit, f replayFlags, names []string) (err error) {
	job, err := f.job(cfg)
	if err != nil {
		return err
	}
	sources, err := t.open(names)
	if err != nil {
		return err
	}
	defer func() { err = also(err, sources.close()) }()
	if f.out != "" {
		out, openErr := sources.create(f.out)
		if openErr != nil {
			return openErr
		}
		defer func() { err = also(err, out.Close()) }()
		job.Out = out
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	simulation, err := composition.NewSimulation(starting, cfg, cfg.Provider)
	if err != nil {
		return err
	}
	defer func() {
		removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		err = also(err, simulation.Close(removing))
	}()
	progress := t.progress(sources.bytes())
	job.Simulator, job.Logs = simulation, sources.logs(progress)
	summary, err := replay.Run(ctx, job)
	progress.done()
	if ctx.Err() != nil {
		return errors.New("interrupted: nothing is printed, since the figures would not be those of the whole log")
	}
	if err != nil {
		return err
	}
	if err := t.printSummary(summary, cfg.Provider, f); err != nil {
		return err
	}
	if summary.Lines > 0 && summary.Unparsed == summary.Lines {
		return errors.New("no line is in common or combined log format")
	}
	return silent(summaryCode(summary))
}

// job gives the parts of a replay that need no file and no connection.
func (f replayFlags) job(cfg config.RateLimit) (replay.Config, error) {
	field, err := accesslog.ParseSubjectField(f.subject)
	if err != nil {
		return replay.Config{}, usagef("--subject-field: %w", err)
	}
	if f.window < 0 || f.window%time.Millisecond != 0 {
		return replay.Config{}, usagef("--sort-window is %v, want whole milliseconds, 0 or more", f.window)
	}
	if f.lines < 1 {
		return replay.Config{}, usagef("--sort-lines is %d, want 1 or more", f.lines)
	}
	policies := cfg.Policies.All()
	if len(f.policies) > 0 {
		policies = nil
		named := make(map[string]bool)
		for _, id := range f.policies {
			policy := cfg.Policies.Get(ratelimit.PolicyID(id))
			if policy == nil || named[id] {
				return replay.Config{}, usagef("--policy %q: the configuration has no such policy, or it is named twice", id)
			}
			named[id] = true
			policies = append(policies, policy)
		}
	}
	secret := cfg.Key.Secret.Reveal()
	if cfg.Key.Secret.IsZero() {
		secret = make([]byte, ratelimit.MinSecretBytes) // the memory provider's: one of this run
		_, _ = rand.Read(secret)                        // it never fails
	}
	digester, err := ratelimit.NewSubjectDigester(secret)
	if err != nil {
		return replay.Config{}, err
	}
	return replay.Config{
		Digest: digester.Digest, Policies: policies, Subject: field,
		Bounds: accesslog.Bounds{Window: f.window, Lines: f.lines},
	}, nil
}

// summaryCode gives the exit code of a replay: the gravest of its outcomes.
func summaryCode(s replay.Summary) int {
	code := ExitOK
	for _, p := range s.Policies {
		switch {
		case len(p.Incompatible) > 0:
			return ExitIncompatible
		case len(p.Unavailable) > 0 || p.Indeterminate > 0:
			code = ExitNotEvaluated
		}
	}
	return code
}

// printSummary prints a summary for people or for programs.
func (t *terminal) printSummary(summary replay.Summary, provider config.Provider, f replayFlags) error {
	if f.asJSON {
		encoder := json.NewEncoder(t.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			Provider string `json:"provider"`
			replay.Summary
		}{provider.String(), summary})
	}
	_, err := io.WriteString(t.stdout, renderSummary(summary, provider, f))
	return err
}
