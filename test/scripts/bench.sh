#!/usr/bin/env bash
# Runs the benchmarks of the packages that have any.
#
# usage: bench.sh REGEXP [further go test flags]
set -euo pipefail
cd "$(dirname "$0")/../.."
go="${GO:-go}"
pattern="${1:-.}"
shift || true

# Comparisons with other libraries have a module of their own, so that these
# libraries are not ours.
found=0
for module in . test/benchmark; do
	[[ -f "$module/go.mod" ]] || continue
	packages=()
	while IFS=$'\t' read -r package dir; do
		if grep -qs '^func Benchmark' "$dir"/*_test.go; then
			packages+=("$package")
		fi
	done < <(cd "$module" && "$go" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{"\t"}}{{.Dir}}{{end}}' ./... | sed '/^$/d')
	[[ ${#packages[@]} -gt 0 ]] || continue
	found=$((found + ${#packages[@]}))
	# One package after another: two at once would measure each other.
	(cd "$module" && "$go" test -p 1 -run '^$' -bench "$pattern" -benchmem "$@" "${packages[@]}")
done
echo "bench: $found packages have benchmarks"
