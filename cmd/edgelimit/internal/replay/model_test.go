package replay_test

import (
	"compress/gzip"
	"io"
	"os"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"
)

// figures are what a plain reading of the sample log gives.
type figures struct {
	admitted, denied     int64
	deniedBy             map[string]int64
	busiest, busiestFrom int64 // requests, and seconds
}

// hit is one request of the sample.
type hit struct {
	second int64
	host   string
}

// hits reads the whole sample with a regular expression and sorts it in memory. The models share no
// code with what they check.
func hits(t *testing.T) []hit {
	t.Helper()
	f, err := os.Open(sampleLog)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	var all []hit
	form := regexp.MustCompile(`^(\S+) \S+ \S+ \[(.*?)\]`)
	for _, l := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		m := form.FindStringSubmatch(l)
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", m[2])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, hit{at.Unix(), m[1]})
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].second < all[j].second })
	return all
}

// model counts what admit says of each request, and the busiest window.
func model(t *testing.T, windowSeconds int64, admit func(hit) bool) figures {
	t.Helper()
	inWindow := map[int64]int64{}
	r := figures{deniedBy: map[string]int64{}}
	for _, h := range hits(t) {
		window := h.second / windowSeconds
		inWindow[window]++
		if inWindow[window] > r.busiest {
			r.busiest, r.busiestFrom = inWindow[window], window*windowSeconds
		}
		if admit(h) {
			r.admitted++
		} else {
			r.denied++
			r.deniedBy[h.host]++
		}
	}
	return r
}

// fixedWindowModel counts for each host and window.
func fixedWindowModel(t *testing.T, limit, windowSeconds int64) figures {
	t.Helper()
	type cell struct {
		host   string
		window int64
	}
	used := map[cell]int64{}
	return model(t, windowSeconds, func(h hit) bool {
		c := cell{h.host, h.second / windowSeconds}
		if used[c] == limit {
			return false
		}
		used[c]++
		return true
	})
}

// logModel keeps the times of what it admitted.
func logModel(t *testing.T, limit, windowSeconds int64) figures {
	t.Helper()
	admitted := map[string][]int64{}
	return model(t, windowSeconds, func(h hit) bool {
		live := int64(0)
		for _, second := range admitted[h.host] {
			if second > h.second-windowSeconds {
				live++
			}
		}
		if live == limit {
			return false
		}
		admitted[h.host] = append(admitted[h.host], h.second)
		return true
	})
}

// tokenBucketModel gives one token each secondsPerToken. It counts in seconds of refill, in which
// nothing has to be divided: a request takes secondsPerToken of them.
func tokenBucketModel(t *testing.T, capacity, secondsPerToken int64) figures {
	t.Helper()
	full := capacity * secondsPerToken
	level, last := map[string]int64{}, map[string]int64{}
	return model(t, secondsPerToken, func(h hit) bool {
		if before, seen := last[h.host]; seen {
			level[h.host] = min(full, level[h.host]+h.second-before)
		} else {
			level[h.host] = full
		}
		last[h.host] = h.second
		if level[h.host] < secondsPerToken {
			return false
		}
		level[h.host] -= secondsPerToken
		return true
	})
}
