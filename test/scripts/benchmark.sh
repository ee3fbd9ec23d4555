#!/usr/bin/env bash
# Runs what is in test/benchmark, a module of its own, so that what edgelimit is
# compared with is not among its dependencies.
#
# usage: benchmark.sh compare|scale|doors|render [flags]   see "benchmark.sh compare -h"
#        benchmark.sh lint                  gofmt, go vet and go mod tidy -diff
#        benchmark.sh test [go test flags]  the tests of the program itself
#
# compare, scale and doors write docs/benchmarks.md and docs/benchmarks/. They start a
# redis-server from PATH; EDGELIMIT_TEST_REDIS_SERVER names another binary,
# EDGELIMIT_TEST_REDIS_ADDR a server that runs already.
set -euo pipefail
cd "$(dirname "$0")/../.."
root="$PWD"
go="${GO:-go}"
what="${1:-compare}"
shift || true

case "$what" in
lint)
	cd test/benchmark
	unformatted="$(gofmt -l .)"
	if [[ -n "$unformatted" ]]; then
		echo "benchmark: not formatted: $unformatted" >&2
		exit 1
	fi
	"$go" vet ./...
	"$go" mod tidy -diff
	(cd envoyratelimit && "$go" mod tidy -diff)
	echo "benchmark: formatted, vetted and tidy"
	;;
test)
	cd test/benchmark
	"$go" test -shuffle=on -timeout 5m "$@" ./...
	;;
*)
	dir="$(mktemp -d)"
	# The program is built and then started, not run by go run, so that a signal
	# reaches it and it ends its server.
	trap 'rm -rf "$dir"' EXIT
	(cd test/benchmark && "$go" build -o "$dir/benchmark" .)
	programs=()
	if [[ "$what" == doors ]]; then
		# Building what ours is measured beside takes minutes the first time.
		"$go" build -o "$dir/edgelimit" ./cmd/edgelimit
		(cd test/benchmark/envoyratelimit && "$go" build -o "$dir/ratelimit" github.com/envoyproxy/ratelimit/src/service_cmd)
		programs=(-own "$dir/edgelimit" -peer "$dir/ratelimit")
	fi
	"$dir/benchmark" "$what" "${programs[@]}" -root "$root" "$@" &
	pid=$!
	trap 'kill -TERM "$pid" 2>/dev/null || true' INT TERM
	status=0
	wait "$pid" || status=$?
	# A signal ends the wait first, and the program a little later.
	while kill -0 "$pid" 2>/dev/null; do
		wait "$pid" || status=$?
	done
	exit "$status"
	;;
esac
