#!/usr/bin/env bash
# Prints the statement coverage, over the tests of the whole module, of the
# contract and of the two providers, and fails below a minimum.
#
# usage: cover.sh MINIMUM_PERCENT DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/../.."
go="${GO:-go}"
minimum="${1:-90}"
out="${2:-cover}"

# The suites in contracttest are tests themselves: what they hold for a failing
# provider does not run while providers pass.
packages="$("$go" list ./shared-contract/... ./adapter/outbound/cacheredis/... ./adapter/outbound/memory/... |
	grep -v '/contracttest' | paste -sd, -)"
mkdir -p "$out"
"$go" test -timeout "${TEST_TIMEOUT:-10m}" -covermode=atomic -coverpkg="$packages" \
	-coverprofile="$out/profile" ./... | grep -v 'no test files'

echo
"$go" tool cover -func="$out/profile" >"$out/functions"
# Each binary reports each block; a block counts once, covered if any saw it.
awk -v minimum="$minimum" '
	NR == 1 { next }
	{ statements[$1] = $2; if ($3 > 0) covered[$1] = 1 }
	END {
		for (block in statements) {
			path = block; sub(/\/[^\/]*$/, "", path)
			total[path] += statements[block]; all += statements[block]
			if (block in covered) { hit[path] += statements[block]; hits += statements[block] }
		}
		if (all == 0) { print "cover: nothing was measured"; exit 1 }
		for (path in total) printf "%6.1f%%  %s\n", 100 * hit[path] / total[path], path | "sort -k2"
		close("sort -k2")
		percent = 100 * hits / all
		printf "%6.1f%%  together, at least %s%% wanted\n", percent, minimum
		exit percent < minimum
	}' "$out/profile"
