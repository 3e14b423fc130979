# collect.sh runs in the sandbox, as the agent's user, when the agent has ended. It
# makes a commit of what was not committed, moves the branch to where the agent
# ended if that only adds to it, and prints a line "kind commit name" for all work
# that is not on the branch, and "head commit -" for the branch itself.
dir=$1 repo=$2 ref=$3 tip=$4 run=$5
GIT_AUTHOR_NAME=Atoll GIT_AUTHOR_EMAIL=atoll@localhost GIT_COMMITTER_NAME=Atoll GIT_COMMITTER_EMAIL=atoll@localhost
export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
g() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.quotePath=false -C "$@" </dev/null 2>/dev/null; }
has() { g "$repo" merge-base --is-ancestor "$1" "$2"; }
new() { ! has "$1" "$tip" && { [ -z "$own" ] || ! has "$1" "$own"; }; }
found() { g "$repo" update-ref "refs/atoll/left/$2" "$2" && printf '%s %s %s\n' "$1" "$2" "$3"; }
# record makes a commit of a tree; its history is what the work began at.
record() {
	parent=$2
	has "$tip" "$parent" || parent=$tip
	g "$repo" commit-tree "$1" -p "$parent" -m "$3"
}

# One list of the refs and one status answer most questions: when the agent has
# committed everything to its branch, no other git is started.
refs=$(g "$repo" for-each-ref --format='%(objectname) %(refname)' refs/heads refs/tags refs/stash)
state=$(g "$dir" --no-optional-locks status --porcelain=v2 --branch --untracked-files=normal --ignore-submodules=none | head -n 6)

own='' stashed=''
while read -r id name; do
	case $name in "$ref") own=$id ;; refs/stash) stashed=$id ;; esac
done <<EOF
$refs
EOF

head='' loose='' at='' dirty=''
while read -r mark key value; do
	case $mark$key in
	'#branch.oid') head=${value#'(initial)'} ;;
	'#branch.head') at=${value#'(detached)'} ;;
	'#'* | '') ;;
	*) dirty=yes ;;
	esac
done <<EOF
$state
EOF

if [ -n "$dirty" ]; then
	g "$dir" add -A --ignore-errors || echo unsaved
	g "$dir" diff --cached --raw --no-renames --ignore-submodules=none | while read -r _ mode _ _ _ path; do
		[ "$mode" != 160000 ] || g "$dir" reset -q -- "$path"
	done
	! g "$dir" status --porcelain --ignore-submodules=none | grep -q '^.[^ ]' || echo unsaved
	tree=$(g "$dir" write-tree) || echo unsaved
	[ -z "$tree" ] || [ "$tree" = "$(g "$dir" rev-parse -q --verify 'HEAD^{tree}')" ] ||
		loose=$(record "$tree" "${head:-$tip}" "uncommitted changes of run $run") || echo unsaved
elif [ -z "$state" ] && [ -e "$dir" ]; then
	head=$(g "$dir" rev-parse -q --verify 'HEAD^{commit}')
	at=$(g "$dir" symbolic-ref -q HEAD)
	echo unsaved
fi

# Commits on a detached HEAD, or on another branch that the agent ended on.
if [ -n "$head" ] && [ "$head" != "$own" ] && new "$head" && has "$tip" "$head" && { [ -z "$own" ] || has "$own" "$head"; }; then
	g "$repo" update-ref "$ref" "$head" && own=$head && echo "moved $head ${at:-HEAD}"
fi
if [ -n "$loose" ] && { [ -z "$own" ] || [ "$own" = "$tip" ]; }; then
	g "$repo" update-ref "$ref" "$loose" && own=$loose && echo "committed $loose -"
elif [ -n "$loose" ]; then
	found uncommitted "$loose" -
fi
if [ -n "$head" ] && [ -z "$at" ] && new "$head"; then
	found detached "$head" HEAD
fi
while read -r id name; do
	case $name in '' | "$ref" | refs/stash | refs/heads/sandbox/*) continue ;; esac
	case $id in "$tip" | "$own") continue ;; esac
	id=$(g "$repo" rev-parse -q --verify "$id^{commit}") && new "$id" && found branch "$id" "$name"
done <<EOF
$refs
EOF
[ -z "$stashed" ] || g "$repo" log -g --format=%H refs/stash -- | while read -r id; do
	GIT_INDEX_FILE=$repo/atoll-stash.index
	export GIT_INDEX_FILE
	g "$repo" read-tree "$id" || continue
	if g "$repo" rev-parse -q --verify "$id^3" >/dev/null; then
		g "$repo" ls-tree -r "$id^3" | git -C "$repo" update-index --add --index-info
	fi
	made=$(record "$(g "$repo" write-tree)" "$(g "$repo" rev-parse "$id^1")" "stashed changes of run $run") && found stash "$made" "$id"
done
[ -z "$own" ] || echo "head $own -"
exit 0
