#!/bin/sh
# Writes a small Debian root file system to standard output, as a tar: the base
# image of last resort, for machines that reach Debian's packages but no image
# registry. Settings come from the environment:
#   SUITE    Debian release                  (bookworm)
#   MIRROR   where to fetch packages from    (mmdebstrap's default)
#   ARCH     Debian architecture             (the host's)
set -eu

suite=${SUITE:-bookworm}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

if ! command -v mmdebstrap >/dev/null; then
	echo "mmdebstrap is not installed (Debian package: mmdebstrap)" >&2
	exit 1
fi

set -- --variant=minbase --format=tar \
	--aptopt='Acquire::Languages "none"' \
	--aptopt='APT::Install-Recommends "false"' \
	--dpkgopt='path-exclude=/usr/share/doc/*' \
	--dpkgopt='path-include=/usr/share/doc/*/copyright' \
	--dpkgopt='path-exclude=/usr/share/man/*' \
	--dpkgopt='path-exclude=/usr/share/info/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' \
	--customize-hook='rm -f "$1/etc/resolv.conf" "$1/etc/hostname"'

# A host that is not Debian does not trust Debian's keys by itself.
if [ -e "$keyring" ]; then set -- "$@" --keyring="$keyring"; fi
if [ -n "${ARCH:-}" ]; then set -- "$@" --architectures="$ARCH"; fi

set -- "$@" "$suite" -
if [ -n "${MIRROR:-}" ]; then set -- "$@" "$MIRROR"; fi

exec mmdebstrap "$@"
