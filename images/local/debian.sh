#!/bin/sh
# Makes a root directory of Debian's packages, inside a sandbox without a network, and
# writes it to standard output as a tar. /build/list has the name of each package's
# archive in /build/packages. The scripts of packages do not run: what those of the
# packages that recipes name would do is done below.
# HOME_USER and HOME_UID are the user that the root has besides Debian's own. COMPILE is
# set if modules of Python are to be compiled.
set -eu
exec 3>&1 1>&2
umask 022
cd "$DEST"

# Packages still have files in /bin and /lib; the root has links there.
for dir in bin sbin lib lib64; do
	mkdir -p "usr/$dir"
	ln -s "usr/$dir" "$dir"
done
mkdir -p var/lib/dpkg/info var/lib/dpkg/updates etc/alternatives etc/ssl/certs usr/local/bin tmp var/tmp run workspace "home/$HOME_USER"
chmod 1777 tmp var/tmp

while read -r file _; do
	dpkg-deb --fsys-tarfile "/build/packages/$file" | tar -xof - --keep-directory-symlink --no-same-permissions \
		--exclude='./usr/share/man/*' --exclude='./usr/share/info/*' --exclude='./usr/share/locale/*' --exclude='./usr/share/lintian/*'
	dpkg-deb --field "/build/packages/$file" | sed 's/^Package: .*/&\nStatus: install ok installed/' >>var/lib/dpkg/status
	echo >>var/lib/dpkg/status
done </build/list
find usr/share/doc -type f ! -name copyright -delete
chmod -R u+rwX,go+rX .

for file in passwd group; do
	if [ -e "usr/share/base-passwd/$file.master" ]; then cp "usr/share/base-passwd/$file.master" "etc/$file"; fi
done
sed -i 's/^root:\*:/root:x:/' etc/passwd
echo "$HOME_USER:x:$HOME_UID:$HOME_UID::${HOME_DIR:-/home/$HOME_USER}:/bin/bash" >>etc/passwd
echo "$HOME_USER:x:$HOME_UID:" >>etc/group
if [ -e usr/share/libc-bin/nsswitch.conf ]; then cp usr/share/libc-bin/nsswitch.conf etc/nsswitch.conf; fi
printf '/bin/sh\n/bin/bash\n' >etc/shells

# Certificates: one bundle of all authorities, as update-ca-certificates writes it.
if [ -d usr/share/ca-certificates ]; then
	find usr/share/ca-certificates -name '*.crt' | sort | while read -r crt; do cat "$crt"; echo; done | grep -v '^$' >etc/ssl/certs/ca-certificates.crt
fi

# Names that belong to several packages, and who has them here.
alternative() { # name, programs by preference
	name=$1
	shift
	for program; do
		[ -e "usr/bin/$program" ] || continue
		ln -sfn "/usr/bin/$program" "etc/alternatives/$name"
		ln -sfn "/etc/alternatives/$name" "usr/bin/$name"
		return
	done
}
alternative awk mawk gawk original-awk
alternative nawk mawk gawk
alternative pager less more
alternative editor nano vim.tiny vim.basic
alternative cc gcc
alternative c++ g++
alternative c89 c89-gcc
alternative c99 c99-gcc
alternative fakeroot fakeroot-sysv
alternative which which.debianutils
alternative nc nc.openbsd nc.traditional
for library in blas lapack; do
	for file in usr/lib/*/$library/lib$library.so.3; do
		[ -e "$file" ] || continue
		ln -sfn "/$file" "etc/alternatives/lib$library.so.3"
		ln -sfn "/etc/alternatives/lib$library.so.3" "${file%"/$library/"*}/lib$library.so.3"
	done
done

# Modules of Python, compiled by the root's own Python. Files lose their times, so
# that the compiled ones must not depend on them.
if [ -n "${COMPILE:-}" ]; then
	for loader in usr/lib64/ld-linux-*.so.* usr/lib/ld-linux-*.so.*; do
		[ -e "$loader" ] && break
	done
	for libraries in usr/lib/*-linux-gnu; do break; done
	PYTHONHOME=$DEST/usr "$loader" --library-path "$DEST/$libraries" usr/bin/python3 -S -m compileall -q -j 0 \
		--invalidation-mode unchecked-hash -s "$DEST" -x '/(tests?|testing|_pydev.*|setuptools|fontTools)/' usr/lib/python3/dist-packages usr/lib/python3.* >/tmp/log ||
		{ tail -n 20 /tmp/log; exit 1; }
fi
tar -cf - . >&3
