package contracttest

import (
	"fmt"
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// mostInteger is 2^53-1, the greatest integer of a store.
const mostInteger = 1<<53 - 1

func storeIntegerTests() []storeTest {
	return []storeTest{
		{name: "IncrBySums", run: incrBySums},
		{name: "IncrByEdges", run: incrByEdges},
		{name: "IncrByDeltaBounds", run: incrByDeltaBounds},
		{name: "IncrByOutOfRange", run: incrByOutOfRange},
		{name: "IncrByNotInteger", run: incrByNotInteger},
	}
}

// incrBySums: the sum comes back and stands there in canonical form.
func incrBySums(h *storeHarness) {
	sum := int64(0)
	for _, delta := range []int64{0, 1, -1, 5, -10, 5, 1_000_000_000_000, -999_999_999_999, 0} {
		sum += delta
		got, err := h.s.IncrBy(h.ctx(), "n", delta, time.Minute)
		if err != nil || got != sum {
			h.Fatalf("IncrBy of %d gives %d, %v, want %d", delta, got, err, sum)
		}
		h.holds("n", fmt.Sprint(sum))
	}
	h.set("n", "-41", time.Minute)
	if got, err := h.s.IncrBy(h.ctx(), "n", 83, time.Minute); err != nil || got != 42 {
		h.Fatalf("IncrBy of a value that was set gives %d, %v, want 42", got, err)
	}
}

// incrByEdges: every step around the edges is exact.
func incrByEdges(h *storeHarness) {
	for _, row := range []struct{ from, delta int64 }{
		{0, mostInteger},
		{0, -mostInteger},
		{mostInteger - 1, 1},
		{-mostInteger + 1, -1},
		{mostInteger, 0},
		{-mostInteger, 0},
		{mostInteger, -mostInteger},
		{-mostInteger, mostInteger},
		{mostInteger, -1},
		{-mostInteger, 1},
		{1, mostInteger - 1},
		{4503599627370495, 4503599627370496},
		{-1, -mostInteger + 1},
	} {
		h.set("n", fmt.Sprint(row.from), time.Minute)
		got, err := h.s.IncrBy(h.ctx(), "n", row.delta, time.Minute)
		if err != nil || got != row.from+row.delta {
			h.Fatalf("%d and %d gives %d, %v", row.from, row.delta, got, err)
		}
		h.holds("n", fmt.Sprint(row.from+row.delta))
	}
	for _, delta := range []int64{mostInteger, -mostInteger, 0} {
		_, err := h.s.Del(h.ctx(), "new")
		h.ok("Del", err)
		if got, err := h.s.IncrBy(h.ctx(), "new", delta, time.Minute); err != nil || got != delta {
			h.Fatalf("a new key and %d gives %d, %v", delta, got, err)
		}
		h.holds("new", fmt.Sprint(delta))
	}
}

func incrByDeltaBounds(h *storeHarness) {
	for _, delta := range []int64{mostInteger + 1, -mostInteger - 1, 1<<63 - 1, -1 << 63} {
		_, err := h.s.IncrBy(h.ctx(), "n", delta, time.Minute)
		h.failed(fmt.Sprintf("a delta of %d", delta), err, store.NotSent, store.CodeInvalidArgument)
		h.absent("n")
	}
}

// incrByOutOfRange: a sum outside changes nothing.
func incrByOutOfRange(h *storeHarness) {
	for _, row := range []struct{ from, delta int64 }{
		{mostInteger, 1},
		{-mostInteger, -1},
		{1, mostInteger},
		{-1, -mostInteger},
		{mostInteger, mostInteger},
		{-mostInteger, -mostInteger},
	} {
		h.set("n", fmt.Sprint(row.from), time.Minute)
		got, err := h.s.IncrBy(h.ctx(), "n", row.delta, time.Hour)
		h.failed(fmt.Sprintf("%d and %d", row.from, row.delta), err, store.Refused, store.CodeOutOfRange)
		if got != 0 {
			h.Errorf("%d beside an error", got)
		}
		h.holds("n", fmt.Sprint(row.from))
		if h.b.can(StoreTTL) {
			h.lives("n", time.Minute)
		}
	}
}

// incrByNotInteger: what some reader of numbers takes for one, and no integer in canonical form is.
func incrByNotInteger(h *storeHarness) {
	for _, text := range []string{
		"", " ", "x", "+1", "-0", "+0", "00", "01", "-01", "1.0", "1.5", ".5", "5.", "1e3", "1E3", "0x1", "0X1F", "nan", "inf", "-inf",
		"1 ", " 1", "1\n", "\n1", "1\x00", "\x001", "1,000", "1_000", "--1", "-", "\u0661", "9007199254740992", "-9007199254740992",
		"9007199254740993", "99999999999999999", "-9999999999999999", "9223372036854775807", "-9223372036854775808",
		"18446744073709551616", "1e400", "nil", "true", strings.Repeat("1", 400), strings.Repeat("0", 17), strings.Repeat("x", store.MaxTextBytes),
	} {
		h.set("n", text, time.Minute)
		for _, delta := range []int64{0, 1, -1} {
			got, err := h.s.IncrBy(h.ctx(), "n", delta, time.Hour)
			h.failed(fmt.Sprintf("%.40q", text), err, store.Refused, store.CodeNotInteger)
			if got != 0 {
				h.Errorf("%d beside an error", got)
			}
		}
		h.holds("n", text)
	}
}
