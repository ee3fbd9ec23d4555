package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/edgelimit/edgelimit/cmd/edgelimit/internal/replay"
)

// sources are the logs of a replay.
type sources struct {
	names   []string
	readers []io.Reader
	files   []*os.File // those to close
	size    int64      // of all of them, -1 where it is not known
}

// open opens logs; - is the standard input.
func (t *terminal) open(names []string) (*sources, error) {
	s := &sources{names: names}
	stdin := false
	for _, name := range names {
		if name == "-" {
			if stdin {
				return nil, errors.Join(usagef("- is named twice"), s.close())
			}
			stdin = true
			s.readers = append(s.readers, t.stdin)
			s.size = -1
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.files, s.readers = append(s.files, file), append(s.readers, file)
		info, err := file.Stat()
		switch {
		case err != nil:
			return nil, errors.Join(err, s.close())
		case info.IsDir():
			return nil, errors.Join(fmt.Errorf("%s is a directory", name), s.close())
		case !info.Mode().IsRegular():
			s.size = -1
		case s.size >= 0:
			s.size += info.Size()
		}
	}
	return s, nil
}

// create opens the file for decisions. One of the logs would be lost if it were the same file.
func (s *sources) create(name string) (*os.File, error) {
	if info, err := os.Stat(name); err == nil {
		for _, file := range s.files {
			if other, err := file.Stat(); err == nil && os.SameFile(info, other) {
				return nil, usagef("--out %s is one of the logs", name)
			}
		}
	}
	return os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
}

func (s *sources) bytes() int64 { return s.size }

// logs gives the logs, each byte of which is told to the progress bar.
func (s *sources) logs(p *progress) []replay.Log {
	logs := make([]replay.Log, len(s.names))
	for i, name := range s.names {
		if name == "-" {
			name = "standard input"
		}
		logs[i] = replay.Log{Name: name, Reader: p.reader(s.readers[i])}
	}
	return logs
}

func (s *sources) close() error {
	var faults []error
	for _, file := range s.files {
		faults = append(faults, file.Close())
	}
	return errors.Join(faults...)
}
