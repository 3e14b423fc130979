#!/bin/sh
# Writes OpenClaw and its Node to standard output, as the tar of an image that
# has them where the published one does: for machines that reach npm but not the
# registry of images. Settings come from the environment:
#   VERSION         of OpenClaw (required)
#   NODE_VERSION    that it runs on                  (24.21.0)
#   OPENCLAW_TREE   a directory where npm installed exactly these two before
# Everything is for this machine's own platform.
set -eu

: "${VERSION:?the version of OpenClaw}"
node_version=${NODE_VERSION:-24.21.0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

version_in() { sed -n 's/^ *"version": *"\([^"]*\)".*/\1/p' "$1/node_modules/$2/package.json" | head -n 1; }

if [ -n "${OPENCLAW_TREE:-}" ]; then
	found="$(version_in "$OPENCLAW_TREE" openclaw) on $(version_in "$OPENCLAW_TREE" node)"
	[ "$found" = "$VERSION on $node_version" ] || {
		echo "$OPENCLAW_TREE holds OpenClaw $found, not $VERSION on $node_version" >&2
		exit 1
	}
	# Links cost nothing; another file system cannot have them.
	cp -al "$OPENCLAW_TREE" "$work/app" 2>/dev/null || { rm -rf "$work/app"; cp -a "$OPENCLAW_TREE" "$work/app"; }
else
	command -v npm >/dev/null || { echo "npm is not installed (Debian package: npm)" >&2; exit 1; }
	mkdir "$work/app"
	cd "$work/app"
	echo '{"private":true}' >package.json
	# Node first: OpenClaw's own installation checks the one that runs it.
	quiet="--no-audit --no-fund --no-progress --loglevel=error"
	npm install $quiet "node@$node_version" >&2
	PATH=$PWD/node_modules/.bin:$PATH npm install $quiet "openclaw@$VERSION" >&2
fi

mkdir -p "$work/usr/local/bin"
cp "$(readlink -f "$work/app/node_modules/.bin/node")" "$work/usr/local/bin/node"
chmod 0755 "$work/usr/local/bin/node"
rm -rf "$work/app/node_modules/node" "$work"/app/node_modules/node-bin-* "$work"/app/node_modules/node-linux-*
rm -f "$work/app/.complete" "$work/app/node_modules/.bin/node"
ln -s node_modules/openclaw/dist "$work/app/dist"
echo "openclaw@$VERSION from npm, on node@$node_version; not the published image" >"$work/app/FROM-NPM"
exec 3>&1
tar -C "$work" --owner=0 --group=0 --numeric-owner -c app usr >&3
