package cli

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar on the error stream, where that is a terminal, and nothing elsewhere.
type progress struct{ bar *progressbar.ProgressBar }

// progress starts a bar for so many bytes, -1 for an unknown number.
func (t *terminal) progress(bytes int64) *progress {
	if !isTerminal(t.stderr) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(bytes,
		progressbar.OptionSetWriter(t.stderr),
		progressbar.OptionSetDescription("replay"),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

// reader tells the bar what is read.
func (p *progress) reader(r io.Reader) io.Reader {
	if p.bar == nil {
		return r
	}
	return io.TeeReader(r, p.bar)
}

// done takes the bar away.
func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish() // it only draws
	}
}

// isTerminal reports whether a stream is one.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && file != nil && term.IsTerminal(int(file.Fd()))
}
