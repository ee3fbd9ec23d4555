package cli

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/app-bootstrap/envoydoor"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

func (t *terminal) policy() *cobra.Command {
	command := &cobra.Command{
		Use:   "policy",
		Short: "Judge policies",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error {
			return usagef("a subcommand is missing; see %s --help", command.CommandPath())
		},
	}
	command.AddCommand(&cobra.Command{
		Use:   "validate FILE",
		Short: "Judge a configuration and show its policies",
		Long: `Judge a configuration as serve would, with the environment's overrides, the files that it names and the
rules of app.envoy-rls, and list everything that is wrong with its key's path (exit code 2). Where nothing is, show the
policies:

  steady rate   what is admitted in the long run, as configured: 5/60s is five in each 60 seconds
  burst         what can be admitted at once
  worst case    the most that can be admitted in any stretch of time of the policy's own window,
                period or refill period, wherever it begins`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return t.validate(args[0]) },
	})
	command.AddCommand(t.policyImport())
	return command
}

func (t *terminal) validate(file string) error {
	cfg, err := config.Load(config.Source{File: file, Environ: t.environ})
	if err != nil {
		return usage(err)
	}
	if err := envoydoor.Judge(cfg.EnvoyRLS); err != nil {
		return usage(err)
	}
	if !cfg.RateLimit.Enabled {
		_, err := fmt.Fprintln(t.stdout, "app.rate-limit is off (enabled is not true): its policies are not judged")
		return err
	}
	_, err = fmt.Fprintln(t.stdout, policyTable(cfg.RateLimit.Policies, cfg.RateLimit.DefaultPolicy))
	return err
}

// policyTable shows each policy in a line, the default one with a star.
func policyTable(policies *ratelimit.PolicySet, byDefault ratelimit.PolicyID) string {
	w := newTable()
	w.AppendHeader(table.Row{"policy", "revision", "algorithm", "limit", "steady rate", "burst", "max cost", "worst case"})
	for _, p := range policies.All() {
		id := string(p.ID())
		if p.ID() == byDefault {
			id += " *"
		}
		b := boundsOf(p.Parameters())
		w.AppendRow(table.Row{
			id, p.Revision(), p.Algorithm(), p.Limit(), rateText(b.units, b.period), p.Limit(), p.MaxCost(),
			fmt.Sprintf("%d in any %s", b.worst, shortDuration(b.period)),
		})
	}
	w.SetColumnConfigs([]table.ColumnConfig{
		{Number: 2, Align: text.AlignRight},
		{Number: 4, Align: text.AlignRight},
		{Number: 5, Align: text.AlignRight},
		{Number: 6, Align: text.AlignRight},
		{Number: 7, Align: text.AlignRight},
		{Number: 8, Align: text.AlignRight},
	})
	return w.Render() + "\n* the default policy"
}

// newTable makes a table of plain characters without colours.
func newTable() table.Writer {
	w := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	return w
}

// bounds are what a policy admits: units in each period in the long run, and worst in any stretch of
// time as long as a period.
type bounds struct {
	units  int64
	period time.Duration
	worst  int64
}

func boundsOf(parameters ratelimit.Parameters) bounds {
	switch p := parameters.(type) {
	case ratelimit.FixedWindowParameters:
		return bounds{p.Limit, p.Window, 2 * p.Limit} // the end of one window and the start of the next
	case ratelimit.SlidingWindowCounterParameters:
		return bounds{p.Limit, p.Window, 2*p.Limit - 1}
	case ratelimit.TokenBucketParameters:
		return bounds{p.RefillTokens, p.RefillPeriod, p.Capacity + p.RefillTokens} // a full bucket, and what comes in
	case ratelimit.GCRAParameters:
		return bounds{p.Limit, p.Period, p.Burst + p.Limit}
	case ratelimit.SlidingWindowLogParameters:
		return bounds{p.Limit, p.Window, p.Limit}
	}
	return bounds{}
}
