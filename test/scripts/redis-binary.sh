#!/usr/bin/env bash
# Unpacks Debian's redis-server and libfaketime, with the libraries they need,
# into a cache directory. Nothing is installed and no root is needed: packages
# are downloaded with apt-get from the sources that this machine is configured
# with and opened with dpkg-deb.
#
# usage: redis-binary.sh [redis-server|libfaketime]
#
# Prints one line: the path of a wrapper that runs redis-server (default), or
# the path of libfaketimeMT.so.1. A second call finds the first one's work;
# concurrent callers wait for each other.
set -euo pipefail

want="${1:-redis-server}"
cache="${XDG_CACHE_HOME:-${HOME:?HOME is not set, set it or XDG_CACHE_HOME}/.cache}/edgelimit-test"

fail() {
	cat >&2 <<TEXT
redis-binary.sh: $*
The tests need a Redis. Any one of these will do:
  1. an address:      EDGELIMIT_TEST_REDIS_ADDR=127.0.0.1:6379 (never flushed or stopped)
  2. Docker:          a reachable engine; EDGELIMIT_TEST_REDIS_IMAGE chooses the image
  3. a redis-server:  in PATH, for example: apt-get install redis-server libfaketime
TEXT
	exit 1
}

case "$want" in
redis-server | libfaketime) ;;
*) fail "unknown argument '$want', expected redis-server or libfaketime" ;;
esac

for tool in apt-get apt-cache dpkg-deb flock; do
	command -v "$tool" >/dev/null 2>&1 || fail "no redis-server here, and no $tool to fetch Debian's with"
done

arch="$(dpkg --print-architecture)"
# shellcheck source=/dev/null
release="$(. /etc/os-release && echo "${ID:-unknown}-${VERSION_CODENAME:-${VERSION_ID:-0}}")"
dir="$cache/redis-binary-v1-$release-$arch"
root="$dir/root"
wrapper="$dir/redis-server"
mkdir -p "$dir"

answer() {
	if [[ "$want" == redis-server ]]; then
		echo "$wrapper"
		return
	fi
	local lib
	lib="$(find "$root" -name libfaketimeMT.so.1 -print -quit)"
	[[ -n "$lib" ]] || fail "the libfaketime package has no libfaketimeMT.so.1"
	echo "$lib"
}

exec 9>"$dir/lock"
flock -w 300 9 || fail "another process has held $dir/lock for five minutes"
if [[ -e "$dir/complete" ]]; then
	answer
	exit 0
fi

work="$(mktemp -d "$dir/work.XXXXXX")"
trap 'rm -rf "$work"' EXIT

apt=()
# Lists of our own, for a machine whose lists are missing or out of date.
private_lists() {
	local state="$dir/apt"
	mkdir -p "$state/state/lists/partial" "$state/cache/archives/partial"
	apt=(-o "Dir::State=$state/state" -o "Dir::Cache=$state/cache"
		-o "Dir::State::status=/var/lib/dpkg/status" -o "APT::Sandbox::User=$(id -un)"
		-o "APT::Update::Post-Invoke::=true" -o "Debug::NoLocking=true"
		-o "Acquire::Retries=1" -o "Acquire::http::Timeout=20" -o "Acquire::https::Timeout=20")
	# One dead source among several must not stop the others: what counts is
	# whether the packages are there afterwards.
	apt-get "${apt[@]}" update >"$work/update.log" 2>&1 || true
}

# The closure of dependencies, less what every Debian has and what must match
# the machine's own loader: another libc than the running one would not start.
packages() {
	{
		apt-cache ${apt[@]+"${apt[@]}"} depends --recurse --no-recommends --no-suggests --no-conflicts \
			--no-breaks --no-replaces --no-enhances redis-server libfaketime 2>/dev/null || true
	} | grep -E '^(lib|redis-|valkey-)[a-z0-9]' |
		grep -vE '^(libc6|libc-bin|libcrypt1|libcrypt-|libperl|libpam|libdebconf|libselinux|libaudit|libsemanage|libdb5|libpcre|libacl|libattr|libbz2)' |
		grep -v ':' | sort -u
}

download() {
	local names
	# No process substitution: a bare chroot has no /dev/fd.
	mapfile -t names <<<"$(packages)"
	printf '%s\n' "${names[@]}" | grep -qx redis-server || return 1
	printf '%s\n' "${names[@]}" | grep -qx libfaketime || return 1
	rm -f "$work"/*.deb
	(cd "$work" && apt-get ${apt[@]+"${apt[@]}"} -o "APT::Sandbox::User=$(id -un)" \
		-o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 \
		download "${names[@]}") >"$work/download.log" 2>&1
}

if ! download; then
	private_lists
	download || {
		cat "$work/update.log" "$work/download.log" >&2 2>/dev/null || true
		fail "Debian's redis-server could not be downloaded"
	}
fi

rm -rf "$root"
mkdir -p "$root"
for deb in "$work"/*.deb; do
	dpkg-deb -x "$deb" "$root"
done

# redis-server is a link to redis-check-rdb, relative or absolute by release.
binary="$root/usr/bin/redis-server"
if [[ -L "$binary" ]]; then
	target="$(readlink "$binary")"
	case "$target" in
	/*) binary="$root$target" ;;
	*) binary="$root/usr/bin/$target" ;;
	esac
fi
[[ -x "$binary" ]] || fail "the redis-server package has no /usr/bin/redis-server"

libs="$(find "$root" -name '*.so.*' -not -path '*/faketime/*' -printf '%h\n' | sort -u | paste -sd: -)"
cat >"$wrapper.new" <<TEXT
#!/bin/sh
# The program asks its own name whether it is the server or a checker.
LD_LIBRARY_PATH='$libs'"\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH
exec '$root/usr/bin/redis-server' "\$@"
TEXT
chmod 755 "$wrapper.new"
if [[ ! -x "$root/usr/bin/redis-server" ]]; then
	ln -sf "$binary" "$root/usr/bin/redis-server"
fi
"$wrapper.new" --version >"$work/version" 2>&1 || {
	cat "$work/version" >&2
	LD_LIBRARY_PATH="$libs" ldd "$binary" >&2 || true
	fail "the unpacked redis-server does not run"
}
mv "$wrapper.new" "$wrapper"
touch "$dir/complete"
answer
