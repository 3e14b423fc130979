#!/bin/sh
# Takes one program out of a Debian package, inside a sandbox without a network that is
# made from the image which the program is added to, and writes it to standard output
# as a tar. /build/list has the name of the package's archive in /build/packages.
# PROGRAM is the program to put into $DEST/bin.
set -eu
exec 3>&1 1>&2
umask 022
mkdir -p "$DEST/bin"
cd "$DEST"
command -v dpkg-deb >/dev/null || { echo "$PROGRAM is added to images with dpkg-deb only"; exit 1; }
read -r file _ </build/list
dpkg-deb --fsys-tarfile "/build/packages/$file" | tar -xOf - "./usr/bin/$PROGRAM" >"bin/$PROGRAM"
chmod 755 "bin/$PROGRAM"
HOME=/tmp "bin/$PROGRAM" --version >/dev/null || { echo "$PROGRAM of this machine's distribution does not run in the image"; exit 1; }
tar -cf - . >&3
