package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/edgelimit/edgelimit/app-bootstrap/envoydoor"
)

func (t *terminal) policyImport() *cobra.Command {
	command := &cobra.Command{
		Use:   "import DIR",
		Short: "Read the rules of envoyproxy/ratelimit and show what becomes of them",
		Long: `Read the *.yaml and *.yml files of a directory of envoyproxy/ratelimit's rules as the door for Envoy does
(docs/envoy.md), and show the policy that each rule becomes, what the files say that has no effect here,
and every difference in how requests are answered. What cannot be taken is listed with file, line and
path (exit code 2).

Nothing is written: app.envoy-rls.rules-dir reads the same files.`,
		Args: usageArgs(cobra.ExactArgs(1)),
	}
	flags := command.Flags()
	merge := flags.Bool("merge-domains", false, "let several files have rules of one domain, as app.envoy-rls.merge-domains does")
	grace := flags.Duration("cleanup-grace", 5*time.Second, "the cleanup-grace of the policies, as app.envoy-rls.cleanup-grace")
	regression := flags.Duration("max-clock-regression", 2*time.Second, "the max-clock-regression of the policies, as app.envoy-rls.max-clock-regression")
	command.RunE = func(_ *cobra.Command, args []string) error {
		return t.importRules(args[0], envoydoor.Options{MergeDomains: *merge, CleanupGrace: *grace, MaxClockRegression: *regression})
	}
	return command
}

func (t *terminal) importRules(dir string, options envoydoor.Options) error {
	rules, directory, err := envoydoor.Import(dir, options)
	if err != nil {
		return usage(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d files, %d domains, %d rules\n\n%s\n", len(directory.Files), rules.Domains(), len(rules.All()), ruleTable(rules))
	if len(directory.Ignored) > 0 || len(rules.Notes()) > 0 {
		b.WriteString("\nOf these files:\n")
		for _, name := range directory.Ignored {
			fmt.Fprintf(&b, "- %s: is not read: it is no file *.yaml or *.yml\n", name)
		}
		for _, note := range rules.Notes() {
			fmt.Fprintf(&b, "- %s\n", note)
		}
	}
	b.WriteString("\nOf all rules, other than elsewhere:\n")
	for _, d := range envoydoor.Differences() {
		fmt.Fprintf(&b, "- %s %s\n", d.What, d.Why)
	}
	_, err = fmt.Fprint(t.stdout, b.String())
	return err
}

// ruleTable shows each rule in a line.
func ruleTable(rules *envoydoor.Rules) string {
	w := newTable()
	w.AppendHeader(table.Row{"domain", "descriptor", "limit", "mode", "policy", "revision", "algorithm", "max cost", "worst case"})
	for _, r := range rules.All() {
		row := table.Row{r.Domain, r.Descriptor, r.Effect.String(), r.Mode}
		if r.Unit.Duration() > 0 {
			row[2] = fmt.Sprintf("%d/%v", r.RequestsPerUnit, r.Unit)
		}
		if p := r.Policy; p != nil {
			bounds := boundsOf(p.Parameters())
			row = append(row, p.ID(), p.Revision(), p.Algorithm(), p.MaxCost(), fmt.Sprintf("%d in any %s", bounds.worst, shortDuration(bounds.period)))
		} else {
			row = append(row, "none", "", "", "", "")
		}
		w.AppendRow(row)
	}
	w.SetColumnConfigs([]table.ColumnConfig{
		{Number: 3, Align: text.AlignRight},
		{Number: 6, Align: text.AlignRight},
		{Number: 8, Align: text.AlignRight},
		{Number: 9, Align: text.AlignRight},
	})
	return w.Render()
}
