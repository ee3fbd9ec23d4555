package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/edgelimit/edgelimit/app-bootstrap/config"
	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/replay"
)

const (
	chartWidth  = 72 // columns at most
	chartHeight = 6  // rows
	shortDigest = 12 // characters of a digest that are shown
)

// renderSummary writes a summary for people.
func renderSummary(s replay.Summary, provider config.Provider, f replayFlags) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s", plural(s.Lines, "line"), plural(s.Requests, "request"))
	if s.Requests > 0 {
		fmt.Fprintf(&b, " from %s to %s", moment(s.FromMillis), moment(s.ToMillis))
	}
	fmt.Fprintf(&b, ", limited by %s, provider %s\n", s.SubjectField, provider)
	if s.Unparsed > 0 {
		fmt.Fprintf(&b, "%s in neither log format; the first:\n", plural(s.Unparsed, "line"))
		for _, u := range s.FirstUnparsed {
			fmt.Fprintf(&b, "  %s:%d: %s: %s\n", u.Log, u.Line, u.Reason, strconv.QuoteToASCII(u.Text))
		}
	}
	if s.Late > 0 {
		fmt.Fprintf(&b, "%s too late to be sorted, not evaluated (--sort-window %s, --sort-lines %d)\n",
			plural(s.Late, "line"), shortDuration(f.window), f.lines)
	}
	if s.WithoutSubject > 0 {
		fmt.Fprintf(&b, "%s without %s, not evaluated\n", plural(s.WithoutSubject, "line"), s.SubjectField)
	}
	b.WriteString("\n")
	b.WriteString(overview(s.Policies))
	for _, p := range s.Policies {
		renderPolicy(&b, p)
	}
	return b.String()
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// overview shows one line for each policy.
func overview(policies []replay.PolicySummary) string {
	w := newTable()
	w.AppendHeader(table.Row{"policy", "algorithm", "requests", "admitted", "denied", "share denied", "not evaluated", "subjects denied"})
	for _, p := range policies {
		w.AppendRow(table.Row{
			p.PolicyID, p.Algorithm, p.Requests, p.Admitted, p.Denied, fmt.Sprintf("%.2f %%", 100*p.DeniedShare),
			p.Requests - p.Admitted - p.Denied, p.DeniedSubjects,
		})
	}
	var right []table.ColumnConfig
	for column := 3; column <= 8; column++ {
		right = append(right, table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	w.SetColumnConfigs(right)
	return w.Render() + "\n"
}

func renderPolicy(b *strings.Builder, p replay.PolicySummary) {
	fmt.Fprintf(b, "\n%s (revision %d)\n", p.PolicyID, p.Revision)
	if p.Busiest != nil {
		fmt.Fprintf(b, "  busiest %s of %s: %d requests of all subjects, %d of them denied, from %s\n",
			p.Busiest.Kind, shortDuration(time.Duration(p.Busiest.Millis)*time.Millisecond), p.Busiest.Requests, p.Busiest.Denied, moment(p.Busiest.FromMillis))
	}
	categories(b, "unavailable", p.Unavailable)
	if p.Indeterminate > 0 {
		fmt.Fprintf(b, "  indeterminate: %d\n", p.Indeterminate)
	}
	categories(b, "incompatible", p.Incompatible)
	if len(p.MostDenied) > 0 {
		b.WriteString("  most denied subjects:\n")
		for _, subject := range p.MostDenied {
			fmt.Fprintf(b, "    %s  %d\n", subject.Digest[:shortDigest], subject.Denied)
		}
	}
	b.WriteString(chart(p.Series))
}

func categories(b *strings.Builder, outcome string, counts map[string]int64) {
	for _, category := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(b, "  %s (%s): %d\n", outcome, category, counts[category])
	}
}

// moment writes a time in UTC, with milliseconds where there are any.
func moment(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02 15:04:05.999") + " UTC"
}

// chart draws admitted and denied requests over time.
func chart(s replay.Series) string {
	if len(s.Admitted) == 0 {
		return ""
	}
	admitted, denied, each := columns(s)
	from := moment(s.FromMillis)
	caption := fmt.Sprintf("· admitted  # denied, each column %s, from %s",
		shortDuration(time.Duration(each*s.PointMillis)*time.Millisecond), from)
	plot := asciigraph.PlotMany([][]float64{admitted, denied},
		asciigraph.Height(chartHeight),
		asciigraph.LowerBound(0),
		asciigraph.Precision(0),
		asciigraph.SeriesChars(asciigraph.CreateCharSet("·"), asciigraph.CreateCharSet("#")),
	)
	var b strings.Builder
	for line := range strings.Lines(plot + "\n") {
		b.WriteString("  " + strings.TrimRight(line, " \n") + "\n")
	}
	return b.String() + "  " + caption + "\n"
}

// columns joins points until they fit the chart's width, and says how many points a column has.
func columns(s replay.Series) (admitted, denied []float64, each int64) {
	each = int64((len(s.Admitted)-1)/chartWidth + 1)
	for i := range s.Admitted {
		at := i / int(each)
		if at == len(admitted) {
			admitted, denied = append(admitted, 0), append(denied, 0)
		}
		admitted[at] += float64(s.Admitted[i])
		denied[at] += float64(s.Denied[i])
	}
	return admitted, denied, each
}
