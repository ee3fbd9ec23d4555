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
	"rate-fixed-window-v1":    "b3be060e79af203308429965886a8faec66582d9",
	"rate-sliding-counter-v1": "16d618e0643e9f4d29f24d89409bcda344e81695",
	"rate-token-bucket-v1":    "9cb32ffa1b4b025163d98aa391b307576a55d6ae",
	"rate-gcra-v1":            "8fbe03f6f143f8ee333b0242754eb26b8ad8366a",
	"rate-sliding-log-v1":     "a8c9b840ea9315ac863f4d0cdd868c0ed659da0f",
	"breaker-acquire-v1":      "cf7a1952661da4849bc93a98d8540feace2caebb",
	"breaker-record-v1":       "6cf4e9ca00b7111aa78f5df6cf1b542256102685",
	"breaker-read-v1":         "1c7e260e21d5215733b4c33b26e52086b3150329",
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
	expected := map[string]bool{"prelude-v1.lua": true, "prelude-breaker-v1.lua": true}
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
	numeric    = regexp.MustCompile(`'[a-z]{1,2}', ([^,)]+)`)
	keyLine    = regexp.MustCompile(`local key\b[a-z, ]* = KEYS\[1\]`)
)

// hashCommands are all that a program over one hash sends beside TIME.
var hashCommands = []string{"TYPE", "HMGET", "HSET", "PEXPIRE"}

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
	"breaker-acquire-v1":      hashCommands,
	"breaker-record-v1":       hashCommands,
	"breaker-read-v1":         hashCommands,
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

// checkWrites: the number in each HSET is formatted explicitly, and the harmless write stands before
// the spending one.
func checkWrites(t *testing.T, code string) {
	t.Helper()
	writes := 0
	for at := strings.Index(code, "redis.call('HSET', key, "); at >= 0; {
		writes++
		call := balanced(code[at:])
		arguments := strings.TrimPrefix(call, "redis.call('HSET', key, ")
		fields := numeric.FindAllStringSubmatch(arguments, -1)
		if len(fields) < 2 {
			t.Errorf("a write of %d fields: %s", len(fields), call)
		}
		for _, f := range fields {
			if value := f[1]; value != "identity" && !strings.HasPrefix(value, "format('%.0f'") {
				t.Errorf("the value %s is not written through format('%%.0f', ...)", value)
			}
		}
		next := strings.Index(code[at+1:], "redis.call('HSET', key, ")
		if next < 0 {
			break
		}
		at += 1 + next
	}
	if writes != 2 {
		t.Errorf("%d writes of state, want one for a state that goes on and one for a new one", writes)
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
	for _, formatted := range []string{"ttl = format('%.0f', ttl)", "format('%.0f', now), format('%.0f', total)", "format('%016.0f', total) .. ':' .. format('%.0f', cost)"} {
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

// balanced cuts text after the parenthesis that closes its first one.
func balanced(text string) string {
	depth := 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return text[:i+1]
			}
		}
	}
	return text
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
