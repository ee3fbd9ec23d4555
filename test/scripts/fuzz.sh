#!/usr/bin/env bash
# Runs every fuzz target of every package, one after another.
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
