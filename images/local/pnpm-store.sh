#!/bin/sh
# Fills a store of pnpm with the packages of /build/pnpm-lock.yaml, inside a sandbox
# without a network, and writes it to standard output as a tar. PNPM is the archive of
# pnpm in /build/packages.
set -eu
exec 3>&1 1>&2
umask 022
export HOME=/tmp/home
mkdir -p "$HOME" /tmp/pnpm /tmp/project
tar -xzof "/build/packages/$PNPM" -C /tmp/pnpm --strip-components=1
cp /build/pnpm-lock.yaml /tmp/project/
echo '{"private":true}' >/tmp/project/package.json

node /build/registry.js /tmp/port &
registry=$!
while [ ! -s /tmp/port ]; do
	kill -0 "$registry"
	sleep 0.1
done
cd /tmp/project
node /tmp/pnpm/bin/pnpm.cjs fetch --store-dir "$DEST" --registry "http://127.0.0.1:$(cat /tmp/port)/" --reporter append-only
kill "$registry"

# Users of sandboxes write to layers of their own over it.
chmod -R a+rwX "$DEST"
tar -C "$DEST" -cf - . >&3
