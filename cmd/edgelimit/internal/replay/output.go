package replay

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/edgelimit/edgelimit/app-bootstrap/service"
	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/accesslog"
	"github.com/edgelimit/edgelimit/shared-contract/ratelimit"
)

// Line is one evaluation as it is written: what was asked, and the outcome as the JSON API gives it.
type Line struct {
	// Line is the line's number in its log, counted from 1.
	Line int64 `json:"line"`
	// Log is which of several logs, counted from 1 in the order of the arguments. Absent where there is
	// one.
	Log           int    `json:"log,omitempty"`
	TimeMillis    int64  `json:"timeMillis"`
	PolicyID      string `json:"policyId"`
	SubjectDigest string `json:"subjectDigest"`
	service.Outcome
}

// writer writes lines. A nil one writes nothing.
type writer struct {
	buffer  *bufio.Writer
	encoder *json.Encoder
	several bool
}

func newWriter(w io.Writer, logs []Log) *writer {
	buffer := bufio.NewWriterSize(w, 256<<10)
	return &writer{buffer: buffer, encoder: json.NewEncoder(buffer), several: len(logs) > 1}
}

func (w *writer) write(item accesslog.Item[ratelimit.SubjectDigest], policy ratelimit.PolicyID, outcome ratelimit.Outcome) error {
	if w == nil {
		return nil
	}
	shape, _ := service.Present(outcome)
	line := Line{
		Line: item.Line, TimeMillis: item.Millis, PolicyID: string(policy), SubjectDigest: item.Value.String(), Outcome: shape,
	}
	if w.several {
		line.Log = item.Source + 1
	}
	if err := w.encoder.Encode(line); err != nil {
		return fmt.Errorf("write decisions: %w", err)
	}
	return nil
}

func (w *writer) flush() error {
	if w == nil {
		return nil
	}
	if err := w.buffer.Flush(); err != nil {
		return fmt.Errorf("write decisions: %w", err)
	}
	return nil
}
