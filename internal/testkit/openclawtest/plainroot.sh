# plainroot.sh ROOT COMMAND…: run a command with the same files in the root
# directory, but for the marks of a container. It changes only the mounts of
# the namespace that it was started in.
set -eu
root=$1
shift
mount -t tmpfs none "$root"
for entry in /* /.[!.]*; do
	name=${entry#/}
	case $name in .dockerenv | '*' | '.[!.]*') continue ;; esac
	if [ -L "$entry" ]; then
		ln -s "$(readlink "$entry")" "$root/$name"
	elif [ -d "$entry" ]; then
		mkdir "$root/$name"
		mount --rbind "$entry" "$root/$name"
	elif [ -f "$entry" ]; then
		: >"$root/$name"
		mount --bind "$entry" "$root/$name"
	fi
done
here=$PWD
mkdir "$root/.before"
cd "$root"
pivot_root . .before
umount -l /.before
rmdir /.before
cd "$here"
exec "$@"
