# look.sh runs in the sandbox, as the agent's user. It prints "head commit ref" for
# what is checked out, and "branch commit ref" for each branch; a dash stands for
# what is not there.
dir=$1
g() { git -c safe.directory='*' -c core.hooksPath=/dev/null -c core.fsmonitor=false -C "$dir" "$@" </dev/null 2>/dev/null; }
command -v git >/dev/null || { echo no-git; exit 0; }
g rev-parse --git-dir >/dev/null || { echo no-repository; exit 0; }
head=$(g rev-parse -q --verify 'HEAD^{commit}')
ref=$(g symbolic-ref -q HEAD)
printf 'head %s %s\n' "${head:--}" "${ref:--}"
g for-each-ref --count=200 --format='branch %(objectname) %(refname)' refs/heads
exit 0
