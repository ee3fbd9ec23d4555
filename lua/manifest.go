package lua

import (
	"crypto/sha1" //nolint:gosec // G505: EVALSHA names programs by SHA-1; nothing rests on its strength.
	"embed"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/edgelimit/edgelimit/shared-contract/store"
)

//go:embed *.lua
var files embed.FS

// LowestRedis is the lowest Redis version, major.minor, that a service lane runs the whole suite on.
const LowestRedis = "7.0"

// Where a program includes what all share that decide by a clock, how integers are read where a few
// calls more do not matter, and what all breakers share.
const (
	includeMarker = "-- @include prelude-v1\n"
	integerMarker = "-- @include prelude-integer-v1\n"
	breakerMarker = "-- @include prelude-breaker-v1\n"
)

// Program is an entry of the manifest.
type Program struct {
	Descriptor  *store.Program
	Source      string // the exact text that Redis compiles
	SHA1        string // 40 lower-case hexadecimal characters, of Source
	LowestRedis string // major.minor
}

var manifest = load()

// load assembles every program that shared-contract/store describes. A file that is missing is a
// fault of the build, so it panics at start.
func load() map[string]Program {
	prelude := read("prelude-v1.lua")
	programs := make(map[string]Program)
	for _, descriptor := range store.Programs() {
		source := strings.Replace(readProgram(descriptor), includeMarker, prelude, 1)
		sum := sha1.Sum([]byte(source)) //nolint:gosec // G401: see the import.
		programs[descriptor.ID()] = Program{
			Descriptor: descriptor, Source: source, SHA1: hex.EncodeToString(sum[:]), LowestRedis: LowestRedis,
		}
	}
	return programs
}

// readProgram gives a program's file, with the preludes that only some programs have in their place.
func readProgram(descriptor *store.Program) string {
	text := read(descriptor.ID() + ".lua")
	text = strings.Replace(text, integerMarker, read("prelude-integer-v1.lua"), 1)
	return strings.Replace(text, breakerMarker, read("prelude-breaker-v1.lua"), 1)
}

func read(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("lua: %v", err))
	}
	return string(text)
}

// Find gives the program of a descriptor. It reports false where there is none of its ID.
func Find(descriptor *store.Program) (Program, bool) {
	p, ok := manifest[descriptor.ID()]
	return p, ok
}

// Programs lists the manifest in the order of shared-contract/store.
func Programs() []Program {
	all := make([]Program, 0, len(manifest))
	for _, descriptor := range store.Programs() {
		all = append(all, manifest[descriptor.ID()])
	}
	return all
}
