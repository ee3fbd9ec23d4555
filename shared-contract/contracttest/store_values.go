package contracttest

import (
	"strings"
	"time"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

func storeValueTests() []storeTest {
	return []storeTest{
		{name: "ValuesOfAnyBytes", run: valuesOfAnyBytes},
		{name: "KeysOfAnyBytes", run: keysOfAnyBytes},
		{name: "SetReplaces", run: setReplaces},
		{name: "SetNX", run: setNX},
		{name: "GetSet", run: getSet},
		{name: "DelCounts", run: delCounts},
		{name: "PrefixesAreApart", needs: []StoreCapability{StoreNeighbour}, run: prefixesAreApart},
	}
}

// everyByte is each byte once.
func everyByte() string {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return string(all)
}

// valuesOfAnyBytes: what is stored comes back, to the last byte.
func valuesOfAnyBytes(h *storeHarness) {
	for _, value := range []string{
		"", "v", "\x00", "a\x00b\x00", " ", "\r\n", "$-1\r\n", "OK", "nil", "0", "-0", "1e400", everyByte(), "\xff\xfe", "ключ \U0001F511",
		strings.Repeat("x", 1<<16), strings.Repeat("\x00", store.MaxTextBytes), strings.Repeat(everyByte(), store.MaxTextBytes/256),
	} {
		h.set("k", value, time.Minute)
		h.holds("k", value)
		before, err := h.s.GetSet(h.ctx(), "k", "other", time.Minute)
		if err != nil || before != value {
			h.Fatalf("GetSet gives %.80q, %v, want %.80q", before, err, value)
		}
	}
}

// keysOfAnyBytes: keys are told apart to the last byte.
func keysOfAnyBytes(h *storeHarness) {
	keys := []string{
		"k", "K", "k ", " k", "k\x00", "\x00", "k:1", "{k}", "*", "k*", "\r\n", "ключ", everyByte(),
		strings.Repeat("k", store.MaxKeyBytes), strings.Repeat("k", store.MaxKeyBytes-1) + "l",
	}
	for i, key := range keys {
		h.set(key, strings.Repeat("v", i), time.Minute)
	}
	for i, key := range keys {
		h.holds(key, strings.Repeat("v", i))
	}
	if n, err := h.s.Del(h.ctx(), keys...); err != nil || n != int64(len(keys)) {
		h.Fatalf("Del gives %d, %v, want %d", n, err, len(keys))
	}
	for _, key := range keys {
		h.absent(key)
	}
}

func setReplaces(h *storeHarness) {
	h.absent("k")
	h.set("k", "one", time.Minute)
	h.set("k", "two", time.Minute)
	h.holds("k", "two")
	h.set("k", "", time.Minute)
	h.holds("k", "")
	h.absent("other")
}

// setNX stores where nothing stands, an empty value counting as something.
func setNX(h *storeHarness) {
	for _, row := range []struct {
		value  string
		stored bool
	}{{"", true}, {"two", false}, {"", false}} {
		if stored, err := h.s.SetNX(h.ctx(), "k", row.value, time.Minute); err != nil || stored != row.stored {
			h.Fatalf("SetNX of %q gives %v, %v", row.value, stored, err)
		}
		h.holds("k", "")
	}
	_, err := h.s.Del(h.ctx(), "k")
	h.ok("Del", err)
	if stored, err := h.s.SetNX(h.ctx(), "k", "three", time.Minute); err != nil || !stored {
		h.Fatalf("SetNX after Del gives %v, %v", stored, err)
	}
	h.holds("k", "three")
}

// getSet gives what stood there, and stores in both cases.
func getSet(h *storeHarness) {
	before, err := h.s.GetSet(h.ctx(), "k", "one", time.Minute)
	if before != "" || err != store.ErrNotFound { //nolint:errorlint // It comes bare.
		h.Fatalf("GetSet gives %q, %v, want a bare ErrNotFound", before, err)
	}
	h.holds("k", "one")
	for _, values := range [][2]string{{"one", ""}, {"", "three"}} {
		if before, err := h.s.GetSet(h.ctx(), "k", values[1], time.Minute); err != nil || before != values[0] {
			h.Fatalf("GetSet gives %q, %v, want %q", before, err, values[0])
		}
		h.holds("k", values[1])
	}
}

// delCounts: only what was there counts, and each once.
func delCounts(h *storeHarness) {
	for _, key := range []string{"a", "b", "c", "d"} {
		h.set(key, "v", time.Minute)
	}
	for _, row := range []struct {
		keys []string
		want int64
	}{
		{[]string{"nothing"}, 0}, {[]string{"a"}, 1}, {[]string{"a"}, 0}, {[]string{"b", "nothing", "c"}, 2}, {[]string{"d", "d", "d"}, 1},
	} {
		if n, err := h.s.Del(h.ctx(), row.keys...); err != nil || n != row.want {
			h.Errorf("Del of %v gives %d, %v, want %d", row.keys, n, err, row.want)
		}
	}
	for _, key := range []string{"a", "b", "c", "d"} {
		h.absent(key)
	}
}

// prefixesAreApart: two stores over one state with different prefixes do not meet.
func prefixesAreApart(h *storeHarness) {
	other := h.b.Neighbour(h)
	h.set("k", "mine", time.Minute)
	h.set("n", "5", time.Minute)
	if _, err := other.Get(h.ctx(), "k"); err != store.ErrNotFound { //nolint:errorlint // It comes bare.
		h.Fatalf("the neighbour sees the key: %v", err)
	}
	if stored, err := other.SetNX(h.ctx(), "k", "its", time.Minute); err != nil || !stored {
		h.Fatalf("the neighbour's SetNX gives %v, %v", stored, err)
	}
	if sum, err := other.IncrBy(h.ctx(), "n", 1, time.Minute); err != nil || sum != 1 {
		h.Fatalf("the neighbour's IncrBy gives %d, %v, want 1", sum, err)
	}
	h.holds("k", "mine")
	h.holds("n", "5")
	if n, err := other.Del(h.ctx(), "k", "n"); err != nil || n != 2 {
		h.Fatalf("the neighbour's Del gives %d, %v", n, err)
	}
	h.holds("k", "mine")
	h.holds("n", "5")
}
