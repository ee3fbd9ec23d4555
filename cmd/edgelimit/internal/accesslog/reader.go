package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// MaxLineBytes bounds a line, its end not counted.
const MaxLineBytes = 64 << 10

// shownBytes is how much of an unparsed line is kept to be shown.
const shownBytes = 160

// Unparsed is a line that is not an entry.
type Unparsed struct {
	Line   int64  // counted from 1
	Text   string // its beginning
	Reason string
}

// Reader reads the lines of one log.
type Reader struct {
	buffer *bufio.Reader
	line   int64
}

// NewReader reads from r, which is taken for gzip where it begins as gzip does, whatever it is called.
func NewReader(r io.Reader) (*Reader, error) {
	buffer := bufio.NewReaderSize(r, MaxLineBytes+2)
	magic, err := buffer.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("accesslog: %w", err)
	}
	if string(magic) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(buffer)
		if err != nil {
			return nil, fmt.Errorf("accesslog: %w", err)
		}
		buffer = bufio.NewReaderSize(unzipped, MaxLineBytes+2)
	}
	return &Reader{buffer: buffer}, nil
}

// Next gives the next entry and its line number, counted from 1, or an *Unparsed; both nil does not
// happen. The error is io.EOF at the end, or that of the stream.
func (r *Reader) Next() (Entry, int64, *Unparsed, error) {
	line, err := r.buffer.ReadSlice('\n')
	if len(line) == 0 && err != nil {
		if errors.Is(err, io.EOF) {
			return Entry{}, 0, nil, io.EOF
		}
		return Entry{}, 0, nil, fmt.Errorf("accesslog: after line %d: %w", r.line, err)
	}
	r.line++
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if errors.Is(err, bufio.ErrBufferFull) || len(line) > MaxLineBytes {
		unparsed := r.unparsed(line, fmt.Sprintf("longer than %d bytes", MaxLineBytes))
		return Entry{}, r.line, unparsed, r.skip(err)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return Entry{}, 0, nil, fmt.Errorf("accesslog: in line %d: %w", r.line, err)
	}
	entry, fault := Parse(line)
	if fault != nil {
		return Entry{}, r.line, r.unparsed(line, fault.Error()), nil
	}
	return entry, r.line, nil, nil
}

// skip reads the rest of a line that filled the buffer.
func (r *Reader) skip(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.buffer.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("accesslog: in line %d: %w", r.line, err)
	}
	return nil
}

func (r *Reader) unparsed(line []byte, reason string) *Unparsed {
	text := line[:min(len(line), shownBytes)]
	return &Unparsed{Line: r.line, Text: string(text), Reason: reason}
}
