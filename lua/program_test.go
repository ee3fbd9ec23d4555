package lua

import (
	"io/fs"
	"regexp"
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
	expected := map[string]bool{"prelude-v1.lua": true}
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
	// commands are all that a rate program sends beside TIME; an ACL has to allow no more.
	commands = map[string]bool{"TYPE": true, "HMGET": true, "HSET": true, "PEXPIRE": true}
)

// TestProgramText holds each program to the rules of the house that its text alone can show.
func TestProgramText(t *testing.T) {
	t.Parallel()
	prelude := read("prelude-v1.lua")
	for _, p := range Programs() {
		t.Run(p.Descriptor.ID(), func(t *testing.T) {
			t.Parallel()
			file := read(p.Descriptor.ID() + ".lua")
			if !strings.HasPrefix(p.Source, "#!lua\n") {
				t.Error("the first line is not exactly #!lua: a replica or a full server would run it")
			}
			if n := strings.Count(file, includeMarker); n != 1 {
				t.Errorf("the marker of the prelude stands %d times in the file", n)
			}
			if strings.Contains(p.Source, "@include prelude-v1\n") || strings.Count(p.Source, prelude) != 1 {
				t.Error("the prelude is not in the source exactly once, in the place of its marker")
			}
			before, after, _ := strings.Cut(file, includeMarker)
			if p.Source != before+prelude+after {
				t.Error("the source is more than the file and the prelude")
			}
			if strings.Contains(p.Source, "\r") || strings.Contains(p.Source, "\t") || !strings.HasSuffix(p.Source, "\n") {
				t.Error("a text that an editor may change in silence")
			}

			code := codeOf(p.Source)
			if n := strings.Count(code, "'TIME'"); n != 1 || strings.Contains(codeOf(file), "TIME") {
				t.Errorf("TIME is read %d times, want once, in the prelude", n)
			}
			for _, line := range strings.Split(code, "\n") {
				rest := strings.NewReplacer("#KEYS", "", "local key = KEYS[1]", "").Replace(line)
				if strings.Contains(rest, "KEYS") {
					t.Errorf("a key from elsewhere than KEYS[1]: %s", line)
				}
			}
			for _, call := range redisCalls.FindAllStringSubmatch(code, -1) {
				if call[2] != "key" || !commands[call[1]] {
					t.Errorf("%s on %s, want one of %v on key", call[1], call[2], commands)
				}
			}
			if calls, keyed := strings.Count(code, "call("), len(redisCalls.FindAllString(code, -1)); calls != keyed+1 {
				t.Errorf("%d commands of which %d name a key; only TIME may not", calls, keyed)
			}
			for _, banned := range []string{"tostring", "math.random", "replicate_commands", "cjson", "struct.", "loadstring", "sha1hex"} {
				if strings.Contains(code, banned) {
					t.Errorf("%s is used", banned)
				}
			}
			checkWrites(t, code)
		})
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
