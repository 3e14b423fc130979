#!/bin/sh
# Installs packages of npm below $DEST, inside a sandbox without a network, and writes
# the result to standard output as a tar. /build/list has a line for each package: its
# archive in /build/packages, its directory, whether it is optional and whether it has
# scripts. An optional package whose scripts fail is left out, as npm does.
# PROGRAMS are the commands to put into $DEST/bin; LINK is one more link, as NAME=TARGET.
set -eu
exec 3>&1 1>&2
umask 022
export HOME=/tmp/home TMPDIR=/tmp npm_config_offline=true npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false
mkdir -p "$HOME" "$DEST/bin"
cd "$DEST"
echo '{"private":true}' >package.json

# Some archives have directories without search permission; they get their modes last.
late=--delay-directory-restore
tar $late --version >/dev/null 2>&1 || late=
while read -r file path _ _; do
	mkdir -p "$path"
	tar -xzof "/build/packages/$file" -C "$path" --strip-components=1 $late 2>/tmp/log || { cat /tmp/log; exit 1; }
	chmod -R u+rwX,go+rX "$path"
done </build/list

# Node comes as a package, too; the first image to be made has no other.
for node in "$DEST"/node_modules/node-linux-*/bin/node; do
	[ -e "$node" ] && ln -s "../${node#"$DEST"/}" bin/node
done
PATH=$DEST/bin:$PATH
npm=$DEST/node_modules/npm/bin/npm-cli.js
[ -e "$npm" ] || npm=$(readlink -f "$(command -v npm)")

node "$npm" rebuild --ignore-scripts --loglevel=error >/dev/null
while read -r _ path optional scripts; do
	[ "$scripts" = yes ] && [ -e "$path" ] || continue
	name=$(node -p 'const p=require(process.argv[1]);p.name+"@"+p.version' "$DEST/$path/package.json")
	echo "running the scripts of $name"
	if ! node "$npm" rebuild --foreground-scripts --loglevel=error "$name" </dev/null >/tmp/log 2>&1; then
		[ "$optional" = yes ] || { tail -n 20 /tmp/log; echo "the scripts of $name failed"; exit 1; }
		echo "left out: $name, which is optional"
		rm -rf "${DEST:?}/$path"
	fi
done </build/list

if [ -n "${LINK:-}" ]; then ln -s "${LINK#*=}" "${LINK%%=*}"; fi
for program in $PROGRAMS; do
	[ -e "bin/$program" ] || ln -s "../node_modules/.bin/$program" "bin/$program"
	[ -x "bin/$program" ] || { echo "no package has the command $program"; exit 1; }
done
tar -cf - . >&3
