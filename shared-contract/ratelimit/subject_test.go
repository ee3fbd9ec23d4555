package ratelimit

import (
	"bytes"
	"strings"
	"testing"
)

func TestParseSubjectDigest(t *testing.T) {
	t.Parallel()
	good := strings.Repeat("0123456789abcdef", 4)
	d, err := ParseSubjectDigest(good)
	if err != nil || d.String() != good || d.IsZero() || d.Bytes()[1] != 0x23 {
		t.Errorf("%v, %v", d, err)
	}
	if zeros, err := ParseSubjectDigest(strings.Repeat("0", 64)); err != nil || zeros.IsZero() || zeros.String() != strings.Repeat("0", 64) {
		t.Errorf("all zeros: %v, %v", zeros, err)
	}
	for name, text := range map[string]string{
		"empty": "", "63": good[1:], "65": good + "0", "upper case": strings.ToUpper(good), "one upper": good[:63] + "F",
		"not hex": good[:63] + "g", "space": " " + good[1:], "newline": good[:63] + "\n", "NUL": good[:63] + "\x00",
		"prefix": "0x" + good[2:], "multi-byte": strings.Repeat("é", 32), "before 0": good[:63] + "/", "after 9": good[:63] + ":",
		"before a": good[:63] + "`", "raw identity": "someone@example.com",
	} {
		d, err := ParseSubjectDigest(text)
		if err == nil || !d.IsZero() || d.String() != "" {
			t.Errorf("%s: %v, %v", name, d, err)
			continue
		}
		if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error repeats the text: %v", name, err)
		}
	}
}

func secret(fill byte) []byte { return bytes.Repeat([]byte{fill}, MinSecretBytes) }

func newDigester(t *testing.T, secret []byte) *SubjectDigester {
	t.Helper()
	d, err := NewSubjectDigester(secret)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Casebook 22: identities with separators, wildcards, NUL, wide characters and great length never
// share a digest, and a digest shows nothing of them.
func TestDigestsDoNotCollide(t *testing.T) {
	t.Parallel()
	digester := newDigester(t, secret(1))
	seen := map[SubjectDigest]string{}
	long := strings.Repeat("x", 10<<10)
	for _, identity := range []string{
		"a", "b", "A", " a", "a ", "a\x00", "\x00a", "\x00", "\x00\x00", ":", "::", "a:b", "a::b", "a:", ":a", "a:b:c", "ab", "ba", "{", "}", "{a}",
		"{a}b", "a{b}", "*", "a*", "?", " ", "\t", "\n", "\r\n", "é", "e\u0301", "\U0001F600", "\U0001F601", "\xff", "\xff\xfe", "\u202e",
		"127.0.0.1", "127.0.0.10", "::1", "0:0:0:0:0:0:0:1", long, long + "x", long[1:], long[:5000] + "y" + long[5001:],
		strings.Repeat("0", 64), strings.Repeat("z", MaxIdentityBytes), strings.Repeat("z", MaxIdentityBytes-1),
	} {
		d, err := digester.Digest(identity)
		if err != nil {
			t.Fatalf("%.20q: %v", identity, err)
		}
		if other, twice := seen[d]; twice {
			t.Errorf("%.20q and %.20q share a digest", identity, other)
		}
		seen[d] = identity
		again, err := ParseSubjectDigest(d.String())
		if err != nil || again != d {
			t.Errorf("%.20q: digest %v is not one: %v", identity, d, err)
		}
		if len(identity) > 2 && strings.Contains(d.String(), identity) {
			t.Errorf("the digest %v shows %.20q", d, identity)
		}
	}
}

func TestDigestIsStableAndKeyed(t *testing.T) {
	t.Parallel()
	one, same, other := newDigester(t, secret(1)), newDigester(t, secret(1)), newDigester(t, secret(2))
	longer := newDigester(t, append(secret(1), 1))
	digest := func(d *SubjectDigester) SubjectDigest {
		t.Helper()
		got, err := d.Digest("someone")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if first, again := digest(one), digest(one); first != again || first != digest(same) {
		t.Error("one secret gives two digests")
	}
	if digest(one) == digest(other) || digest(one) == digest(longer) {
		t.Error("two secrets give one digest")
	}
	// Pinned (and derived once by another implementation of HKDF and HMAC): a change of the derivation
	// would give every subject a fresh quota.
	const pinned = "e623e45d3558105fa270d130098d6a29acf3356f40937b5813be0823711683c0"
	if got := digest(one).String(); got != pinned {
		t.Errorf("digest is %s, pinned %s", got, pinned)
	}
}

func TestDigestBounds(t *testing.T) {
	t.Parallel()
	digester := newDigester(t, secret(1))
	for name, identity := range map[string]string{"empty": "", "too long": strings.Repeat("q", MaxIdentityBytes+1)} {
		d, err := digester.Digest(identity)
		if err == nil || !d.IsZero() {
			t.Errorf("%s: %v, %v", name, d, err)
		} else if identity != "" && strings.Contains(err.Error(), "qqqq") {
			t.Errorf("%s: the error repeats the identity", name)
		}
	}
	for _, n := range []int{0, 1, MinSecretBytes - 1} {
		if d, err := NewSubjectDigester(make([]byte, n)); err == nil || d != nil {
			t.Errorf("a secret of %d bytes was accepted", n)
		}
		if key, err := DeriveKey(make([]byte, n), "label"); err == nil || key != nil {
			t.Errorf("a key was derived from %d bytes", n)
		}
	}
}

func TestDeriveKeySeparatesPurposes(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, label := range []string{"", "a", "b", "edgelimit subject digest v1", "edgelimit subject digest v2", "edgelimit key digest v1"} {
		key, err := DeriveKey(secret(1), label)
		if err != nil || len(key) != 32 {
			t.Fatalf("%q: %d bytes, %v", label, len(key), err)
		}
		if other, twice := seen[string(key)]; twice {
			t.Errorf("%q and %q share a key", label, other)
		}
		if bytes.Equal(key, secret(1)) {
			t.Errorf("%q gives the secret itself", label)
		}
		seen[string(key)] = label
	}
}
