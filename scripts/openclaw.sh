#!/usr/bin/env bash
# Installs the unmodified OpenClaw from npm, in pinned versions, for the tests
# and measurements that run it on Atoll. Quick when it is there already.
#
#   scripts/openclaw.sh [up] [VERSION]   install (default: the current version)
#   scripts/openclaw.sh dir [VERSION]    print where it is or would be
#   scripts/openclaw.sh image            make its image on the test engine, from
#                                        what was installed (needs bin/atoll)
#
# Each version lies in a directory of its own with the Node it needs.
set -euo pipefail

root=${ATOLL_OPENCLAW_DIR:-/var/tmp/atoll-openclaw}
current=2026.9.6
node_of() { case $1 in 2026.9.6) echo 24.21.0 ;; 2026.2.26) echo 22.23.3 ;; *) return 1 ;; esac; }

# What npm must choose otherwise: an old dependency from a git server, and a
# release that needs a package which not every mirror has.
overrides_of() {
	case $1 in
	2026.2.26) echo '{"libsignal":"npm:libsignal@2.0.1","linkedom":"0.18.12"}' ;;
	*) echo '{}' ;;
	esac
}

fail() { echo "openclaw.sh: $*" >&2; exit 1; }

is_whole() { [[ -e $1/.complete && -x $1/node_modules/.bin/node ]]; }

install() {
	local version=$1 dir=$2
	command -v npm >/dev/null || fail "npm is missing: run scripts/deps.sh"
	echo "openclaw.sh: installing OpenClaw $version into $dir" >&2
	rm -rf "$dir"
	mkdir -p "$dir"
	cd "$dir"
	printf '{"private":true,"overrides":%s}\n' "$(overrides_of "$version")" >package.json
	# Node first: OpenClaw's own installation checks the one that runs it.
	local quiet=(--no-audit --no-fund --no-progress --loglevel=error)
	npm install "${quiet[@]}" "node@$(node_of "$version")" >&2
	PATH=$PWD/node_modules/.bin:$PATH npm install "${quiet[@]}" "openclaw@$version" >&2
	node_modules/.bin/node node_modules/openclaw/openclaw.mjs --version >&2
	touch .complete
}

up() {
	local version=$1 dir=$root/$1
	is_whole "$dir" && return
	mkdir -p "$root"
	exec 9>"$root/lock" # two who install at once would spoil each other's
	flock 9
	is_whole "$dir" || (install "$version" "$dir")
}

# image: as a user would make it, but that nothing is fetched from npm again.
image() {
	up "$current"
	local here
	here=$(cd "$(dirname "$0")/.." && pwd)
	eval "$("$here/scripts/test-engine.sh" env)"
	OPENCLAW_TREE=$root/$current ATOLL_STATE_DIR=$root/state "$here/bin/atoll" images build openclaw --backend docker --network host
}

verb=${1:-up} version=${2:-$current}
node_of "$version" >/dev/null || fail "version $version is not one of those that are tested: 2026.9.6, 2026.2.26"
case $verb in
up) up "$version" ;;
dir) echo "$root/$version" ;;
image) image ;;
*) fail "usage: openclaw.sh [up|dir] [VERSION], or openclaw.sh image" ;;
esac
