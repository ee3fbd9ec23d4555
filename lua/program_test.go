package lua

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

// digests are the SHA-1 of every released program. A released program never changes: what behaves
// differently is the next version, beside it. A line here may be added, and never be edited.
var digests = map[string]string{
	"rate-fixed-window-v1":    "8625543b7815473c2534310ed7404d854d08e147",
	"rate-sliding-counter-v1": "6c22c481ae5bc09a49f2e9e919f319b89c46942f",
	"rate-token-bucket-v1":    "42d0dc142c2c60763d0259ce1c02f5f5fec761a5",
	"rate-gcra-v1":            "d883f03b8b5541d4cd5be564bb834f6649c489a2",
	"rate-sliding-log-v1":     "1df80d0acfd386287f353bf9cf6605cf296fe1c1",
	"breaker-acquire-v1":      "5f15c222e16142b3a2432264d80a157fa5b8d4ff",
	"breaker-record-v1":       "c0057f4dcf46c94d6c8536e4f445f16069efb293",
	"breaker-read-v1":         "8761e18badeb6e040ffc3a8c9a6fe4f5c87d77b6",
	"store-incrby-v1":         "9f48238b3c1fd384a0e673ecb8882d8450fe695e",
	"cache-replace-v1":        "c0ff5d280765ee139ad3fad766357dcd71dc679b",
	"cache-delete-v1":         "0ccf498799263ee5e138ac2b31175fe260007c9f",
}

// TestReleasedProgramsNeverChange: a rolling deployment has both versions of a program live; with two
// texts of one version they would decide differently over one state.
func TestReleasedProgramsNeverChange(t *testing.T) {
	t.Parallel()
	for _, p := range Programs() {
		id := p.Descriptor.ID()
		if want, ok := digests[id]; !ok || p.SHA1 != want {
			t.Errorf("%s has the digest %s, want %q: a released program never changes, make the next version", id, p.SHA1, want)
		}
	}
	if len(digests) != len(Programs()) {
		t.Errorf("%d digests of %d programs", len(digests), len(Programs()))
	}
}

// TestManifest: every program that is described is there, every file is a program's or the prelude,
// and each is found by the ID of its descriptor alone.
func TestManifest(t *testing.T) {
	t.Parallel()
	expected := map[string]bool{"prelude-v1.lua": true, "prelude-integer-v1.lua": true, "prelude-breaker-v1.lua": true}
	for i, d := range store.Programs() {
		p, ok := Find(d)
		if !ok || p != Programs()[i] || p.Descriptor != d {
			t.Errorf("%s: found %v", d.ID(), ok)
		}
		expected[d.ID()+".lua"] = true
	}
	if _, ok := Find(&store.Program{Name: "rate-fixed-window", Version: 99}); ok {
		t.Error("a version that does not exist was found")
	}
	names, err := fs.Glob(files, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !expected[name] {
			t.Errorf("%s is no program's file", name)
		}
	}
	if len(names) != len(expected) {
		t.Errorf("%d files, want %d", len(names), len(expected))
	}
}

// TestMissingFile: a fault of the build does not wait for the first call.
func TestMissingFile(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a file that does not exist was read")
		}
	}()
	read("rate-nothing-v1.lua")
}

var (
	redisCalls = regexp.MustCompile(`redis\.p?call\('([A-Z]+)', ([a-z]+)`)
	stateWrite = regexp.MustCompile(`redis\.call\('HSET', key, identity, (?:after|(format\('%d(?: %d)+', [a-z_, ]+\)))\)\n`)
	stateText  = regexp.MustCompile(`local after = format\('%d(?: %d)+', `)
	keyLine    = regexp.MustCompile(`local key\b[a-z, ]* = KEYS\[1\]`)
)

// hashCommands are all that a rate program over one hash sends beside TIME.
var hashCommands = []string{"TYPE", "HGET", "HSET", "PEXPIRE"}

// breakerCommands are those of a breaker program, whose state has a field for each of its parts.
var breakerCommands = []string{"TYPE", "HMGET", "HSET", "PEXPIRE"}

// logCommands are those of the program over a sorted set. An empty read explains itself there, so TYPE
// comes with the prelude alone.
var logCommands = []string{"TYPE", "ZRANGE", "ZREMRANGEBYSCORE", "PEXPIRE", "ZADD"}

// commands are all that each program sends beside TIME; an ACL has to allow no more.
var commands = map[string][]string{
	"rate-fixed-window-v1":    hashCommands,
	"rate-sliding-counter-v1": hashCommands,
	"rate-token-bucket-v1":    hashCommands,
	"rate-gcra-v1":            hashCommands,
	"rate-sliding-log-v1":     logCommands,
	"breaker-acquire-v1":      breakerCommands,
	"breaker-record-v1":       breakerCommands,
	"breaker-read-v1":         breakerCommands,
	"store-incrby-v1":         {"GET", "SET"},
	"cache-replace-v1":        {"GETRANGE", "EXISTS", "SET"},
	"cache-delete-v1":         {"GETRANGE", "EXISTS", "DEL"},
}

// usesPrelude tells a program of the kind that decides by a clock from one behind a scalar method.
func usesPrelude(t *testing.T, d *store.Program) bool {
	t.Helper()
	uses := strings.Contains(read(d.ID()+".lua"), "@include")
	if scalar := !strings.HasPrefix(d.Name, "rate-") && !strings.HasPrefix(d.Name, "breaker-"); uses == scalar {
		t.Errorf("%s includes the prelude: %v; programs of rates and breakers do, and no other", d.ID(), uses)
	}
	return uses
}

// TestProgramText holds each program to the rules of the house that its text alone can show.
func TestProgramText(t *testing.T) {
	t.Parallel()
	prelude := read("prelude-v1.lua")
	for _, p := range Programs() {
		t.Run(p.Descriptor.ID(), func(t *testing.T) {
			t.Parallel()
			file := readProgram(p.Descriptor)
			if !strings.HasPrefix(p.Source, "#!lua\n") {
				t.Error("the first line is not exactly #!lua: a replica or a full server would run it")
			}
			markers := 0
			if usesPrelude(t, p.Descriptor) {
				markers = 1
			}
			if n := strings.Count(file, includeMarker); n != markers {
				t.Errorf("the marker of the prelude stands %d times in the file, want %d", n, markers)
			}
			if strings.Contains(p.Source, "@include prelude-v1\n") || strings.Count(p.Source, prelude) != markers {
				t.Error("the prelude is not in the source exactly in the place of its marker")
			}
			if before, after, marked := strings.Cut(file, includeMarker); marked && p.Source != before+prelude+after || !marked && p.Source != file {
				t.Error("the source is more than the file and the prelude")
			}
			if strings.Contains(p.Source, "\r") || strings.Contains(p.Source, "\t") || !strings.HasSuffix(p.Source, "\n") {
				t.Error("a text that an editor may change in silence")
			}

			code := codeOf(p.Source)
			if n := strings.Count(code, "'TIME'"); n != markers || strings.Contains(codeOf(file), "TIME") {
				t.Errorf("TIME is read %d times, want it read by the prelude alone", n)
			}
			for _, line := range strings.Split(code, "\n") {
				if rest := keyLine.ReplaceAllString(strings.ReplaceAll(line, "#KEYS", ""), ""); strings.Contains(rest, "KEYS") {
					t.Errorf("a key from elsewhere than KEYS[1]: %s", line)
				}
			}
			allowed, known := commands[p.Descriptor.ID()]
			if !known {
				t.Error("this test does not know which commands the program may send")
			}
			sent := make(map[string]bool)
			for _, call := range redisCalls.FindAllStringSubmatch(code, -1) {
				sent[call[1]] = true
				if call[2] != "key" || !slices.Contains(allowed, call[1]) {
					t.Errorf("%s on %s, want one of %v on key", call[1], call[2], allowed)
				}
			}
			if len(sent) != len(allowed) {
				t.Errorf("sends %v, allowed are %v: an ACL would allow too much", sent, allowed)
			}
			if calls, keyed := strings.Count(code, "call("), len(redisCalls.FindAllString(code, -1)); calls != keyed+markers {
				t.Errorf("%d commands of which %d name a key; only TIME may not", calls, keyed)
			}
			for _, banned := range []string{"tostring", "math.random", "replicate_commands", "cjson", "struct.", "loadstring", "sha1hex"} {
				if strings.Contains(code, banned) {
					t.Errorf("%s is used", banned)
				}
			}
			switch {
			case strings.HasPrefix(p.Descriptor.Name, "breaker-"):
				checkBreakerWrites(t, code)
			case slices.Equal(allowed, hashCommands):
				checkWrites(t, code)
			}
			if slices.Equal(allowed, logCommands) {
				checkLogWrites(t, code)
			}
		})
	}
	if len(commands) != len(Programs()) {
		t.Errorf("commands of %d programs, there are %d", len(commands), len(Programs()))
	}
}

// checkWrites: a state is one text, its integers are formatted explicitly and whole, and the harmless
// write stands before the spending one.
func checkWrites(t *testing.T, code string) {
	t.Helper()
	writes := stateWrite.FindAllStringSubmatch(code, -1)
	if len(writes) != 2 || strings.Count(code, "'HSET'") != 2 {
		t.Errorf("%d writes of state, want one for a state that goes on and one for a new one", len(writes))
	}
	formatted := len(stateText.FindAllString(code, -1))
	for _, write := range writes {
		if write[1] != "" {
			formatted++
		}
	}
	if before, _, _ := strings.Cut(code, "'HSET'"); formatted != 2 && (formatted != 1 || !stateText.MatchString(before)) {
		t.Error("a state is written that format does not make of whole integers")
	}
	// %d is a C long: where that has 32 bits, no state may come to be.
	const wide = "  if format('%d', 9007199254740991) ~= '9007199254740991' then\n" +
		"    return {'STATE_INCOMPATIBLE', server_now, server_now, 0, 0, 0, 0}\n  end\n"
	if at := strings.Index(code, wide); at < 0 || at > strings.Index(code, "redis.call('PEXPIRE'") {
		t.Error("the first write of a state does not find out whether 2^53-1 is formatted whole")
	}
	expire, lastHSET := strings.Index(code, "redis.call('PEXPIRE'"), strings.LastIndex(code, "redis.call('HSET'")
	if expire < 0 || lastHSET < expire || !strings.Contains(code[lastHSET:], "if found == 0 then redis.call('PEXPIRE'") {
		t.Error("the lifetime is not set before the state, and again where there was no key")
	}
	if !strings.Contains(code, "ttl = format('%.0f', ttl)") {
		t.Error("the lifetime is not formatted explicitly")
	}
}

// checkLogWrites: what is dead goes, the lifetime is set, and then one write spends.
func checkLogWrites(t *testing.T, code string) {
	t.Helper()
	order := []string{"redis.call('ZREMRANGEBYSCORE', ", "local found = redis.call('PEXPIRE', ", "redis.call('ZADD', ", "if found == 0 then redis.call('PEXPIRE', "}
	last := -1
	for _, write := range order {
		at := strings.Index(code, write)
		if at <= last || strings.Count(code, write) != 1 {
			t.Errorf("%s does not stand once, after the one before it", write)
		}
		last = at
	}
	for _, formatted := range []string{
		"ttl = format('%.0f', ttl)", "identity .. format(' %d %d', now, total)", "format('%d', now), format('%016d:%d', total, cost)",
		"if not state[1] and format('%d', 9007199254740991) ~= '9007199254740991' then",
	} {
		if !strings.Contains(code, formatted) {
			t.Errorf("no %s: a number is not formatted explicitly", formatted)
		}
	}
	if reads := code[strings.LastIndex(code, "'ZRANGE'"):]; strings.Index(reads, "'DENIED'") > strings.Index(reads, "'ZREMRANGEBYSCORE'") {
		t.Error("something is written before a denial")
	}
}

// checkBreakerWrites: breakers write in one place, the lifetime before the state, and every number that
// goes there through format.
func checkBreakerWrites(t *testing.T, code string) {
	t.Helper()
	const write = `  ttl = format('%.0f', ttl)
  local found = redis.call('PEXPIRE', key, ttl)
  redis.call('HSET', key, 'l', format('%.0f', now), unpack(fields))
  if found == 0 then redis.call('PEXPIRE', key, ttl) end
`
	if strings.Count(code, write) != 1 || strings.Count(code, "'HSET'") != 1 || strings.Count(code, "'PEXPIRE'") != 2 {
		t.Errorf("the program writes elsewhere, or in another order, than\n%s", write)
	}
	for _, number := range []string{"since", "failures", "successes"} {
		if !strings.Contains(code, "', format('%.0f', "+number+")") {
			t.Errorf("%s is not written through format('%%.0f', ...)", number)
		}
	}
	if strings.Contains(code, " .. ") && strings.Count(code, " .. ") != strings.Count(code, "identity .. ':sim'") {
		t.Error("a text is joined from what may be a number")
	}
}

// codeOf drops comment lines.
func codeOf(text string) string {
	var code []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") && line != "#!lua" {
			code = append(code, line)
		}
	}
	return strings.Join(code, "\n")
}
