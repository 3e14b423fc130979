#!/usr/bin/env bash
# What Atoll does, step by step, with nothing but this machine's kernel: no
# engine, no image. Every step is checked: the script fails if one does not do
# what it says. Nothing that it makes is left.
#
# DEMO_SANDBOX and DEMO_TOOLS add to the configuration, to see it fail: without
# a sandbox, or without a tool.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
PATH=${ATOLL_BIN:-$root/bin}:$PATH
# No engine is used, and this proves it.
export DOCKER_HOST=unix:///nowhere/docker.sock

dir=$(mktemp -d)
export ATOLL_STATE_DIR=$dir/state ATOLL_CONFIG=$dir/atoll.json5
output=$dir/output

bold='' dim='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; fi

heading() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
say() { printf '%s\n' "$*"; }

fail() {
	printf '\ndemo: %s\n' "$*" >&2
	exit 1
}

# told: what is read, moved in, with a short name for our directory.
told() { sed "s|$dir|\$demo|g; s|^|  |"; }

# spelled WORD…: a command as one would type it.
spelled() {
	local word line='$'
	for word; do
		[[ $word =~ ^[A-Za-z0-9_./:=@%+,\$-]+$ ]] || word="'$word'"
		line+=" $word"
	done
	printf '%s' "$line"
}

# run COMMAND…: shows the command and what it prints; keeps output and code.
code=0
run() {
	printf '%s%s%s\n' "$dim" "$(spelled "${@//$dir/\$demo}")" "$plain"
	code=0
	"$@" >"$output" 2>&1 </dev/null || code=$?
	told <"$output"
}

# shows PATTERN COMMAND…: the command works, and prints something like this.
shows() {
	local pattern=$1
	shift
	run "$@"
	((code == 0)) || fail "it ended with code $code"
	grep -qE -- "$pattern" "$output" || fail "it did not print '$pattern'"
}

# refused CODE PATTERN COMMAND…: the command fails, in this way.
refused() {
	local want=$1 pattern=$2
	shift 2
	run "$@"
	((code == want)) || fail "it ended with code $code, not $want: it must be refused"
	grep -qE -- "$pattern" "$output" || fail "it did not say '$pattern'"
}

# in_order PATTERN…: the last output has lines like these, one after the other.
in_order() {
	local pattern line at=0
	for pattern; do
		line=$(tail -n "+$((at + 1))" "$output" | grep -nE -m1 -- "$pattern" | cut -d: -f1) ||
			fail "it did not print '$pattern', or not in its place"
		[[ -n $line ]] || fail "it did not print '$pattern', or not in its place"
		at=$((at + line))
	done
}

cleanup() {
	[[ ! -e $ATOLL_STATE_DIR ]] || atoll sandbox recreate --all --force --discard >/dev/null 2>&1 || true
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

command -v atoll >/dev/null || fail "there is no bin/atoll yet: run make build"

# Limits take control groups, which are root's unless they were delegated.
limits=''
((EUID != 0)) || limits=', memory: "256m", pidsLimit: 64'

mkdir "$dir/project"
echo 'You are a careful agent.' >"$dir/project/AGENTS.md"
echo 'the source code' >"$dir/project/code.txt"
cat >"$ATOLL_CONFIG" <<JSON5
// One file says everything; unset values have safe defaults.
{
  agents: { defaults: {
    workspace: "./project",
    sandbox: { mode: "all", ${DEMO_SANDBOX:+$DEMO_SANDBOX, }docker: { containerPrefix: "atoll-demo-$$-"$limits } },
  } },${DEMO_TOOLS:+
  tools: { sandbox: { tools: { $DEMO_TOOLS \} \} \},}
  llm: { prices: { "atoll-demo": { input: 3, output: 15 } } }, // dollars for a million tokens
}
JSON5

say "${bold}Atoll${plain} runs AI agents, and every command they call, inside hardened sandboxes."
say "Everything here happens in a temporary directory, \$demo, and goes away at the end."

heading "1. A configuration, and what it means"
told <"$ATOLL_CONFIG"
shows ': ok$' atoll config check
say "Explain says what applies, and where each value comes from. The part about walls and files:"
atoll sandbox explain >"$dir/page"
grep -q 'network .*none: only loopback' "$dir/page" || fail "explain does not mention the network"
sed -n '/^Walls/,/^Environment/{/^Environment/d;/^$/d;p}' "$dir/page" | told

heading "2. An agent at work"
say "Its tools work in the sandbox; its model is asked from here, through the proxy that counts and records."
say "No key is needed for this: in the demonstration a scripted model answers. Its price is made up."
shows 'Done: the program adds' atoll demo --run-id demo
in_order '^ *sandbox .*linux' '^ *network none' '→ exec' '← .* ms' 'FAIL: 2 \+ 3' '← PASS' '← [0-9a-f]+ Add two numbers' '^ *7 tool calls .* tokens .*\$0\.[0-9]*[1-9].* receipt demo$'
say "Its commit is in the sandbox:"
shows 'Add two numbers' atoll run -- git -C demo log --oneline
say "The receipt, what each call of the model cost, and that nobody changed the record:"
shows '^state +ok' atoll runs show demo
shows '^demo .* 7 ' atoll runs cost demo
shows '7 records' atoll audit verify

heading "3. A command in a sandbox"
shows '^42$' atoll run -- python3 -c 'print(6*7)'
say "Its exit code is the command's:"
refused 3 '^bye$' atoll run -- sh -c 'echo bye; exit 3'

heading "4. What it cannot do"
say "No network:"
refused 1 'Network is unreachable' atoll run -- bash -c 'exec 3<>/dev/tcp/1.1.1.1/443'
say "A read-only system:"
refused 1 'Read-only file system' atoll run -- touch /usr/bin/backdoor
say "No capability, even for root, and no way to get one:"
shows 'CapEff:.0000000000000000' atoll run -- grep -E 'CapEff|NoNewPrivs' /proc/self/status
say "No secret by accident:"
refused 125 'the name is that of a secret' atoll run --env GITHUB_TOKEN=x -- true
if [[ -n $limits ]]; then
	say "No more memory than it was given:"
	refused 137 'ran out of memory' atoll run --timeout 20s -- tail /dev/zero
fi
say "And no dangerous setting, whoever wrote it. A bind of the engine's socket:"
sed 's|containerPrefix:|binds: ["/var/run/docker.sock:/docker.sock"], containerPrefix:|' "$ATOLL_CONFIG" >"$dir/careless.json5"
refused 2 'gives access to the socket' atoll config check "$dir/careless.json5"

heading "5. Files"
atoll run -- rm -rf demo # what the agent did above
say "The agent works in a private copy of the behaviour files, without the project. What it writes there is here, on the host:"
shows '' atoll run -- sh -c 'cat AGENTS.md; ls; echo hello from inside >note.txt'
host=$(atoll sandbox explain --path /workspace/note.txt --json | jq -er .path.host) || fail "explain --path gives no host path"
shows '^hello from inside$' cat "$host"
[[ ! -e $dir/project/note.txt ]] || fail "the file reached the original"
say "What differs from the original:"
shows 'note\.txt' atoll sandbox diff
say "To let it work on the project itself, say so:"
shows '^the source code$' atoll run --rm --access rw -- sh -c 'cat code.txt; echo done >result.txt'
shows '^done$' cat "$dir/project/result.txt"

heading "6. What there is, and whether it holds"
shows ' running .* agent:main ' atoll sandbox list
say "Every promise, tried from inside:"
shows 'ok .*capabilities' atoll sandbox verify

heading "7. Cleaning up"
shows 'removed' atoll sandbox recreate --all --force --discard
shows 'No sandboxes' atoll sandbox list
say ""
say "That was all of it, in ${SECONDS} seconds. Next: bin/atoll --help, docs/agent.md, docs/config.md, docs/security.md"
