#!/usr/bin/env bash
# Runs go generate and fails if that changes, adds or removes any file, whether
# or not the work tree was clean before.
set -euo pipefail
cd "$(dirname "$0")/../.."
go="${GO:-go}"

snapshot() {
	git ls-files --cached --others --exclude-standard -z | sort -z |
		while IFS= read -r -d '' file; do
			if [[ -f "$file" ]]; then sha256sum -- "$file"; fi
		done
}
before="$(snapshot)"
"$go" generate ./...
after="$(snapshot)"
if [[ "$before" != "$after" ]]; then
	echo "generated files are out of date; run go generate ./... and commit:" >&2
	diff <(echo "$before") <(echo "$after") >&2 || true
	exit 1
fi
echo "generated files are up to date"
