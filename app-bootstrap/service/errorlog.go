package service

import (
	"log"
	"log/slog"
	"regexp"
	"strings"
)

// remote is how net/http names the other side of a connection.
var remote = regexp.MustCompile(` (from|serving) \S+`)

// withoutRemote passes on what net/http has to say, without the address that it says it of.
type withoutRemote struct{ logger *slog.Logger }

func (w withoutRemote) Write(line []byte) (int, error) {
	w.logger.Warn("http server", slog.String("error", remote.ReplaceAllString(strings.TrimSpace(string(line)), "")))
	return len(line), nil
}

func errorLog(logger *slog.Logger) *log.Logger { return log.New(withoutRemote{logger}, "", 0) }
