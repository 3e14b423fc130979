#!/usr/bin/env bash
# Installs programs from npm that talk to models, in pinned versions, with a
# Node to run them, for the tests that run them in sandboxes. Quick when they
# are there already.
#
#   scripts/sdks.sh [up]           install the SDKs of OpenAI and Anthropic
#   scripts/sdks.sh up agents      install Codex, Claude Code, opencode and Gemini CLI instead
#   scripts/sdks.sh up mcp         install the inspector of the Model Context Protocol instead
#   scripts/sdks.sh up typescript  install what builds sdk/typescript instead, with the oldest Node that it works with
#   scripts/sdks.sh up e2b         install the SDKs of E2B instead
#   scripts/sdks.sh up browsers    install programs that drive browsers instead
#   scripts/sdks.sh up dashboard   install what builds and tests web/ instead, as its lock file says
#   scripts/sdks.sh dir [agents]   print where they are or would be
set -euo pipefail

root=${ATOLL_SDKS_DIR:-/var/tmp/atoll-sdks}
node=node@24.21.0
sdks=(openai@7.53.0 @anthropic-ai/sdk@1.8.0)
mcp=(@modelcontextprotocol/inspector@2.12.0)
browsers=(playwright-core@1.65.1 puppeteer-core@25.16.0 chrome-remote-interface@0.34.0 @playwright/mcp@0.0.83)
e2b=(e2b@2.51.0 @e2b/code-interpreter@2.8.0)
agents=(@anthropic-ai/claude-code@2.1.325 @openai/codex@0.166.0 opencode-ai@1.18.33 @google/gemini-cli@0.61.0)
package=$(dirname "$0")/../sdk/typescript/package.json
web=$(cd "$(dirname "$0")/../web" && pwd)

fail() { echo "sdks.sh: $*" >&2; exit 1; }

# dir_of is a directory for exactly these packages: another version is another
# directory, and what is there is never changed.
dir_of() { echo "$root/$(printf '%s\n' "$node" "$@" | sha256sum | cut -c 1-12)"; }

install() {
	local dir=$1
	shift
	command -v npm >/dev/null || fail "npm is missing: run scripts/deps.sh"
	echo "sdks.sh: installing $* into $dir" >&2
	rm -rf "$dir"
	mkdir -p "$dir"
	cd "$dir"
	echo '{"private":true}' >package.json
	npm install --no-audit --no-fund --no-progress --loglevel=error "$node" "$@" >&2
	node_modules/.bin/node --version >&2
	touch .complete
}

# install_locked installs what a lock file says, without scripts of the packages. npm ci
# would refuse a lock file that lacks the optional packages of other systems.
install_locked() {
	command -v npm >/dev/null || fail "npm is missing: run scripts/deps.sh"
	echo "sdks.sh: installing what builds web/ into $1" >&2
	rm -rf "$1"
	mkdir -p "$1"
	cp "$web/package.json" "$web/package-lock.json" "$1"
	(cd "$1" && npm install --no-save --ignore-scripts --no-audit --no-fund --no-progress --loglevel=error >&2)
	touch "$1/.complete"
}

up() {
	local dir
	dir=$(dir_of "$@")
	[[ -e $dir/.complete ]] && return
	mkdir -p "$root"
	exec 9>"$root/lock" # two who install at once would spoil each other's
	flock 9
	[[ -e $dir/.complete ]] && return
	if [[ $1 == dashboard ]]; then install_locked "$dir"; else (install "$dir" "$@"); fi
}

which=("${sdks[@]}")
[[ ${2:-} == agents ]] && which=("${agents[@]}")
[[ ${2:-} == mcp ]] && which=("${mcp[@]}")
[[ ${2:-} == browsers ]] && which=("${browsers[@]}")
[[ ${2:-} == e2b ]] && which=("${e2b[@]}")
[[ ${2:-} == dashboard ]] && which=(dashboard "$(sha256sum <"$web/package-lock.json")")
if [[ ${2:-} == typescript ]]; then
	node=node@20.20.2
	mapfile -t which < <(jq -r '.devDependencies | to_entries[] | "\(.key)@\(.value)"' "$package")
	((${#which[@]} > 0)) || fail "jq is missing: run scripts/deps.sh"
fi
case ${1:-up} in
up) up "${which[@]}" ;;
dir) dir_of "${which[@]}" ;;
*) fail "usage: sdks.sh [up|dir] [agents|mcp|typescript|e2b|browsers|dashboard]" ;;
esac
