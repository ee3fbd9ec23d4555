package report

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/edgelimit/edgelimit/test/benchmark/contender"
)

// The charts, by file name.
const (
	ChartRates        = "rates.svg"
	ChartLatency      = "latency.svg"
	ChartMemory       = "memory.svg"
	ChartScaleCallers = "scale-callers.svg"
	ChartScaleKeys    = "scale-keys.svg"
	ChartScaleMemory  = "scale-memory.svg"
)

const (
	chartWidth  = 11 * vg.Inch
	panelHeight = 4.5 * vg.Inch
	legendWidth = 3.7 * vg.Inch
	margin      = 10 * vg.Millimeter / 4
)

// panel is a plot with its legend, which stands beside it.
type panel struct {
	*plot.Plot
	legend plot.Legend
}

// sans is the typeface of all text.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

func newPanel(title, xName, yName string) *panel {
	p := &panel{plot.New(), plot.NewLegend()}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, xName, yName
	p.Title.Padding = vg.Points(8)
	p.legend.Top, p.legend.Left = true, true
	p.legend.Padding = vg.Points(2)
	for _, f := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font,
		&p.legend.TextStyle.Font,
	} {
		f.Typeface, f.Variant = sans.Typeface, sans.Variant
	}
	return p
}

// series is a line of a chart.
type series struct {
	name string
	xys  plotter.XYs
}

func (s *series) add(x, y float64) {
	if x > 0 && y > 0 && !math.IsNaN(y) && !math.IsInf(y, 0) {
		s.xys = append(s.xys, plotter.XY{X: x, Y: y})
	}
}

// lines draws series over a logarithmic axis. It is nil where there is nothing to draw.
func lines(title, xName, yName string, logY bool, all []series) (*panel, error) {
	p := newPanel(title, xName, yName)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, valueTicks(all)
	p.Add(plotter.NewGrid())
	drawn := 0
	for i, s := range all {
		if len(s.xys) == 0 {
			continue
		}
		drawn++
		line, marks, err := plotter.NewLinePoints(s.xys)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = plotutil.Color(i), vg.Points(1.5)
		line.Dashes = plotutil.Dashes(i / len(plotutil.DefaultColors))
		marks.Color, marks.Shape = plotutil.Color(i), plotutil.Shape(i)
		p.Add(line, marks)
		p.legend.Add(s.name, line, marks)
	}
	if drawn == 0 {
		return nil, nil
	}
	if p.X.Min == p.X.Max {
		p.X.Min, p.X.Max = p.X.Min/2, p.X.Max*2
	}
	if logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades{}
		p.Y.Min = math.Pow(10, math.Floor(math.Log10(p.Y.Min)))
		p.Y.Max = math.Pow(10, math.Ceil(math.Log10(p.Y.Max*1.01)))
	} else {
		p.Y.Min = 0
		p.Y.Max *= 1.05
	}
	return p, nil
}

// decades marks a logarithmic axis at powers of ten.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(least, greatest float64) []plot.Tick {
	var ticks []plot.Tick
	for decade := math.Floor(math.Log10(least)); decade <= math.Ceil(math.Log10(greatest)); decade++ {
		one := math.Pow(10, decade)
		ticks = append(ticks, plot.Tick{Value: one, Label: grouped(int(one))})
		for n := 2.0; n < 10; n++ {
			ticks = append(ticks, plot.Tick{Value: n * one})
		}
	}
	return ticks
}

// valueTicks marks the places that were measured.
func valueTicks(all []series) plot.ConstantTicks {
	seen := make(map[float64]bool)
	var ticks plot.ConstantTicks
	for _, s := range all {
		for _, xy := range s.xys {
			if !seen[xy.X] {
				seen[xy.X] = true
				ticks = append(ticks, plot.Tick{Value: xy.X, Label: grouped(int(xy.X))})
			}
		}
	}
	return ticks
}

// render gives panels, one below the other, as SVG. It is nil where there is nothing to show.
func render(panels ...*panel) ([]byte, error) {
	shown := panels[:0:0]
	for _, p := range panels {
		if p != nil {
			shown = append(shown, p)
		}
	}
	if len(shown) == 0 {
		return nil, nil
	}
	canvas := vgsvg.New(chartWidth, panelHeight*vg.Length(len(shown)))
	whole := draw.New(canvas)
	for i, p := range shown {
		below := panelHeight * vg.Length(len(shown)-1-i)
		above := panelHeight * vg.Length(i)
		strip := draw.Crop(whole, margin, -margin, below+margin, -above-margin)
		p.Draw(draw.Crop(strip, 0, -legendWidth, 0, 0))
		p.legend.Draw(draw.Crop(strip, chartWidth-legendWidth, 0, 0, -vg.Points(24)))
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	// The typeface may not be there where the chart is read.
	named := []byte("font-family:" + string(sans.Typeface) + " " + string(sans.Variant))
	return bytes.ReplaceAll(out.Bytes(), named, []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif")), nil
}

// WriteCharts writes the charts of what was measured into a folder.
func WriteCharts(dir string, c *Comparison, s *Scale) error {
	charts := make(map[string][]*panel)
	var faults []error
	add := func(name string, p *panel, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("report: %s: %w", name, err))
			return
		}
		charts[name] = append(charts[name], p)
	}
	if c != nil {
		p, err := overCallers(c, "Allowances over Redis", "thousand decisions a second", false, func(s Sample) float64 { return s.Rate() / 1e3 })
		add(ChartRates, p, err)
		p, err = overCallers(c, "p99 latency of allowances over Redis", "µs", true, func(s Sample) float64 { return float64(s.P99) / 1e3 })
		add(ChartLatency, p, err)
		p, err = bars(c)
		add(ChartMemory, p, err)
	}
	if s != nil {
		for _, axis := range []struct {
			file, name string
			points     []point
		}{
			{ChartScaleCallers, "callers", points(s.Callers, byCallers)},
			{ChartScaleKeys, "keys", points(s.Keys, byKeys)},
		} {
			rates, middle, tail := series{name: "decisions"}, series{name: "p50"}, series{name: "p99"}
			for _, at := range axis.points {
				rates.add(float64(at.x), at.rate/1e3)
				middle.add(float64(at.x), at.p50/1e3)
				tail.add(float64(at.x), at.p99/1e3)
			}
			p, err := lines("edgelimit over Redis by "+axis.name, axis.name, "thousand decisions a second", false, []series{rates})
			add(axis.file, p, err)
			p, err = lines("", axis.name, "µs", true, []series{middle, tail})
			add(axis.file, p, err)
		}
		each := series{name: "time for each decision"}
		for _, at := range points(s.Memory, byKeys) {
			each.add(float64(at.x), at.nanos)
		}
		p, err := lines("edgelimit in memory by keys, all cores", "keys", "ns", false, []series{each})
		add(ChartScaleMemory, p, err)
	}
	if len(faults) > 0 {
		return faults[0]
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: documentation is for everybody.
		return err
	}
	for name, panels := range charts {
		svg, err := render(panels...)
		if err != nil {
			return fmt.Errorf("report: %s: %w", name, err)
		}
		if svg == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), svg, 0o644); err != nil { //nolint:gosec // G306: likewise.
			return err
		}
	}
	return nil
}

func overCallers(c *Comparison, title, unit string, logY bool, figure func(Sample) float64) (*panel, error) {
	var all []series
	for _, e := range c.Redis {
		line := series{name: e.Name}
		for _, callers := range c.Conditions.Callers {
			line.add(float64(callers), median(c.Samples, allow(e.Name, callers), figure))
		}
		all = append(all, line)
	}
	return lines(title, "callers", unit, logY, all)
}

// bars draws the time of a decision in memory, one group for each contender.
func bars(c *Comparison) (*panel, error) {
	p := newPanel("Time for each decision in memory", "", "ns")
	width := vg.Points(13)
	drawn := false
	var names []string
	for _, e := range c.Memory {
		name := strings.TrimPrefix(e.Name, "edgelimit ")
		names = append(names, strings.NewReplacer("sliding-window-", "sliding-\n", "sethvargo/", "sethvargo/\n").Replace(name))
	}
	for i, keys := range c.Conditions.MemoryKeys {
		callers := c.Conditions.MemoryCallers
		if keys == 1 {
			callers = 1
		}
		values := make(plotter.Values, len(c.Memory))
		for n, e := range c.Memory {
			value := median(c.InMemory, Cell{Contender: e.Name, Kind: string(contender.Allow), Callers: callers, Keys: keys}, nanos)
			if !math.IsNaN(value) {
				values[n], drawn = value, true
			}
		}
		if len(values) == 0 {
			continue
		}
		chart, err := plotter.NewBarChart(values, width)
		if err != nil {
			return nil, err
		}
		chart.Color, chart.LineStyle.Width = plotutil.Color(i), 0
		chart.Offset = width * vg.Length(float64(i)-float64(len(c.Conditions.MemoryKeys)-1)/2)
		p.Add(chart)
		p.legend.Add(plural(keys, "key")+", "+plural(callers, "caller"), chart)
	}
	if !drawn {
		return nil, nil
	}
	p.NominalX(names...)
	p.X.Tick.Label.Rotation = math.Pi / 4
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YTop
	p.X.Min, p.X.Max = -0.7, float64(len(names))-0.3
	p.Y.Min = 0
	p.Y.Max *= 1.05
	return p, nil
}
