#!/usr/bin/env bash
# Runs every fuzz target of every package, one after another, and where all are
# asked for the long walks of test/parity: PARITY_STEPS (default 200000) steps of
# random programs on real Redis, embedded Redis and in memory.
#
# usage: fuzz.sh REGEXP TIME
set -euo pipefail
cd "$(dirname "$0")/../.."
go="${GO:-go}"
pattern="${1:-^Fuzz}"
time="${2:-20s}"

count=0
while IFS=$'\t' read -r package dir; do
	grep -qs '^func Fuzz' "$dir"/*_test.go || continue
	while read -r target; do
		echo "fuzz: $target in $package for $time"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" </dev/null
		count=$((count + 1))
	done < <("$go" test -list "$pattern" "$package" | grep '^Fuzz' || true)
done < <("$go" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{"\t"}}{{.Dir}}{{end}}' ./... | sed '/^$/d')
echo "fuzz: $count targets ran"

if [[ "$pattern" == "^Fuzz" ]]; then
	steps="${PARITY_STEPS:-200000}"
	echo "fuzz: $steps steps of parity"
	"$go" test -count=1 -timeout 90m -v -run '^TestPrograms$' ./test/parity -steps "$steps"
	"$go" test -count=1 -timeout 90m -run '^(TestProgramsOnEachLane|TestScalarMethods|TestScalarMethodsOnEachLane|TestCommands)$' ./test/parity -steps "$((steps / 5))"
fi
