package cli

import (
	"strconv"
	"strings"
	"time"
)

// shortDuration writes a duration without the zeros that time.Duration adds: 1m, not 1m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// rateText writes a steady rate as it is configured, not reduced: 50/s, 5/60s, 1/250ms.
func rateText(units int64, period time.Duration) string {
	text := strconv.FormatInt(units, 10) + "/"
	switch {
	case period == time.Second:
		return text + "s"
	case period%time.Second == 0:
		return text + strconv.FormatInt(int64(period/time.Second), 10) + "s"
	default:
		return text + strconv.FormatInt(period.Milliseconds(), 10) + "ms"
	}
}
