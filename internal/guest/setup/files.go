package setup

import (
	"errors"
	"path"

	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"golang.org/x/sys/unix"
)

// writeFile writes a file and replaces what the image has at its path.
func (b *builder) writeFile(m *blueprint.Mount) error {
	parent, err := b.clearTarget(m.Target)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	fd, err := unix.Openat(parent, path.Base(m.Target), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, m.Mode)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for text := []byte(m.Text); len(text) > 0; {
		n, err := unix.Write(fd, text)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		text = text[max(n, 0):]
	}
	return nil
}

func (b *builder) link(m *blueprint.Mount) error {
	parent, err := b.clearTarget(m.Target)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	return unix.Symlinkat(m.Text, parent, path.Base(m.Target))
}

// clearTarget removes the file at target and opens its directory.
func (b *builder) clearTarget(target string) (int, error) {
	parent, err := b.makeDirs(path.Dir(target), 0o755)
	if err != nil {
		return 0, err
	}
	if err := unix.Unlinkat(parent, path.Base(target), 0); err != nil && !errors.Is(err, unix.ENOENT) {
		unix.Close(parent)
		return 0, err
	}
	return parent, nil
}

// mask mounts an empty file or directory over a path, if it exists.
func (b *builder) mask(target string) error {
	place, err := b.lookup(target, unix.O_PATH)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(place)
	kind, err := kindOf(place)
	if err != nil {
		return err
	}
	cover, err := b.cover(kind)
	if err != nil {
		return err
	}
	defer unix.Close(cover)
	return attach(cover, place)
}

// cover returns a mount of the sandbox's own /dev/null for files, or of an empty directory
// for directories.
func (b *builder) cover(kind uint32) (int, error) {
	const clone = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC
	if kind != unix.S_IFDIR {
		null, err := b.lookup("/dev/null", unix.O_PATH)
		if err != nil {
			return 0, err
		}
		defer unix.Close(null)
		return unix.OpenTree(null, "", clone|unix.AT_EMPTY_PATH)
	}
	if b.empty == 0 {
		if err := b.makeEmpty(); err != nil {
			return 0, err
		}
	}
	return unix.OpenTree(b.empty, "", clone|unix.AT_EMPTY_PATH)
}

// makeEmpty mounts an empty file system below the scratch one: only an attached mount can
// be cloned.
func (b *builder) makeEmpty() error {
	made, err := newFilesystem("tmpfs", "mode=0555,size=4096,nr_inodes=1", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	place, err := makeDir(b.scratch, "empty", 0o755)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	b.empty = made
	return attach(made, place)
}

// sealPath mounts a read-only view of a path over itself, if it exists.
func (b *builder) sealPath(target string) error {
	place, err := b.lookup(target, unix.O_PATH)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(place)
	view, err := unix.OpenTree(place, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(view)
	if err := unix.MountSetattr(view, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return err
	}
	return attach(view, place)
}

// sealMount makes the file system that is mounted at a path read-only.
func (b *builder) sealMount(target string) error {
	place, err := b.lookup(target, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(place)
	return unix.MountSetattr(place, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}
