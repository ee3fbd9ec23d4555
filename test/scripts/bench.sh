#!/usr/bin/env bash
# Runs the Go benchmarks of the packages that have any. Comparisons with other
# libraries are not among them: see benchmark.sh.
#
# usage: bench.sh REGEXP [further go test flags]
set -euo pipefail
cd "$(dirname "$0")/../.."
go="${GO:-go}"
pattern="${1:-.}"
shift || true

packages=()
while IFS=$'\t' read -r package dir; do
	if grep -qs '^func Benchmark' "$dir"/*_test.go; then
		packages+=("$package")
	fi
done < <("$go" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{"\t"}}{{.Dir}}{{end}}' ./... | sed '/^$/d')
if [[ ${#packages[@]} -gt 0 ]]; then
	# One package after another: two at once would measure each other.
	"$go" test -p 1 -run '^$' -bench "$pattern" -benchmem "$@" "${packages[@]}"
fi
echo "bench: ${#packages[@]} packages have benchmarks"
