#!/usr/bin/env bash
# Makes a Docker image with the redis-server of a Debian release, for machines
# that have a Docker Engine and Debian's packages but no image registry.
#
# usage: redis-image.sh [SUITE]        trixie (Redis 8.0, default) or bookworm (7.0)
#
# Prints one line: the image's tag, whose version is read from the package that
# was installed, e.g. edgelimit-test/redis:8.0-debian-trixie. Does nothing where
# Docker has such an image already; concurrent callers wait for each other.
set -euo pipefail

suite="${1:-trixie}"
repository=edgelimit-test/redis
cache="${XDG_CACHE_HOME:-${HOME:?HOME is not set, set it or XDG_CACHE_HOME}/.cache}/edgelimit-test"

fail() {
	echo "redis-image.sh: $*" >&2
	exit 1
}

case "$suite" in
trixie | bookworm) ;;
*) fail "unknown suite '$suite', expected trixie or bookworm" ;;
esac
for tool in docker flock tar; do
	command -v "$tool" >/dev/null 2>&1 || fail "$tool is not in PATH"
done
docker version >/dev/null 2>&1 || fail "the Docker engine does not answer (docker version)"

present() {
	docker image ls --format '{{.Repository}}:{{.Tag}}' --filter "reference=$repository:*-debian-$suite" | head -n 1
}

mkdir -p "$cache"
exec 9>"$cache/redis-image-$suite.lock"
flock -w 600 9 || fail "another process has been making the image for ten minutes"

tag="$(present)"
if [[ -n "$tag" ]]; then
	echo "$tag"
	exit 0
fi

[[ "$(id -u)" == 0 ]] || fail "debootstrap needs root to make the image of Debian's redis-server"

if ! command -v debootstrap >/dev/null 2>&1; then
	command -v apt-get >/dev/null 2>&1 || fail "neither debootstrap nor apt-get is in PATH"
	export DEBIAN_FRONTEND=noninteractive
	# The lists may be missing or old: try once as it is, then with new ones.
	apt-get install -y --no-install-recommends debootstrap >&2 9>&- ||
		{ apt-get update >&2 9>&- && apt-get install -y --no-install-recommends debootstrap >&2 9>&-; } ||
		fail "debootstrap is not installed and apt-get could not install it"
fi

# Debian's own mirror as this machine is configured with; a machine of another
# distribution uses debootstrap's default.
mirror=""
if command -v apt-get >/dev/null 2>&1; then
	# shellcheck disable=SC2016 # apt's own placeholders
	mirror="$(apt-get indextargets --format '$(CREATED_BY) $(LABEL) $(COMPONENT) $(REPO_URI)' 2>/dev/null |
		awk '$1 == "Packages" && $2 == "Debian" && $3 == "main" { print $4; exit }')"
fi

work="$(mktemp -d "${TMPDIR:-/tmp}/edgelimit-redis-image.XXXXXX")"
trap 'rm -rf --one-file-system "$work"' EXIT

build() {
	rm -rf --one-file-system "$work/root"
	debootstrap --variant=minbase --include=redis-server "$suite" "$work/root" ${1:+"$1"} >"$work/log" 2>&1 9>&-
}
echo "redis-image.sh: making an image of Debian $suite's redis-server, this takes a minute" >&2
build "$mirror" || { [[ -n "$mirror" ]] && build ""; } || {
	tail -n 20 "$work/log" >&2
	fail "debootstrap $suite failed"
}

# shellcheck disable=SC2016 # dpkg-query's own placeholder
package="$(chroot "$work/root" dpkg-query -W -f '${Version}' redis-server)"
version="$(printf '%s\n' "$package" | sed -E 's/^[0-9]+://; s/^([0-9]+\.[0-9]+).*/\1/')"
[[ "$version" =~ ^[0-9]+\.[0-9]+$ ]] || fail "cannot read a version from the package's version '$package'"
tag="$repository:$version-debian-$suite"

# What a server never reads would only make the image larger.
rm -rf "$work/root"/var/cache/apt/* "$work/root"/var/lib/apt/lists/* \
	"$work/root"/usr/share/doc/* "$work/root"/usr/share/man/* "$work/root"/usr/share/locale/*

# redis-server as process 1 handles SIGTERM itself; without persistence it is
# gone at once.
tar -C "$work/root" -c . | docker import \
	--change 'USER redis' \
	--change 'WORKDIR /var/lib/redis' \
	--change 'EXPOSE 6379' \
	--change "LABEL edgelimit.test.package=$package" \
	--change 'CMD ["redis-server","--bind","0.0.0.0","--protected-mode","no","--save","","--appendonly","no"]' \
	- "$tag" >/dev/null

echo "$tag"
