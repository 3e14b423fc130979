package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
)

// In an archive a file named .wh.NAME says that NAME of the layers below is
// gone, and .wh..wh..opq that a directory hides everything below it. Other
// names that begin with .wh..wh. are notes of old engines to themselves.
const (
	whiteoutPrefix = ".wh."
	whiteoutNotes  = ".wh..wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// In an overlay the first is a character device 0:0, which any user may make
// since Linux 5.8, and the second an attribute: user. where an ordinary user
// mounts, trusted. where root does. Root writes both, so that one layer serves
// either mount.
const (
	opaqueByUser = "user.overlay.opaque"
	opaqueByRoot = "trusted.overlay.opaque"
)

func isWhiteout(st unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 }

// whiteout acts on an archive's entry with a whiteout's name.
func (t *tree) whiteout(name string) error {
	switch base := path.Base(name); {
	case base == whiteoutOpaque && path.Dir(name) == ".":
		t.opaqueTop = true
		return nil
	case base == whiteoutOpaque:
		return t.opaque(path.Dir(name))
	case strings.HasPrefix(base, whiteoutNotes):
		return nil
	default:
		return t.hide(path.Join(path.Dir(name), strings.TrimPrefix(base, whiteoutPrefix)), base)
	}
}

// hide takes a name of the layers below away. What this layer itself has of
// that name stays, whichever came first in the archive.
func (t *tree) hide(name, base string) error {
	if leaf := strings.TrimPrefix(base, whiteoutPrefix); leaf == "" || leaf == "." || leaf == ".." {
		return fmt.Errorf("whiteout of %q: %w", leaf, ErrBadName)
	}
	parent, err := t.dirOf(name)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	err = unix.Fstatat(parent, path.Base(name), &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return t.opaque(name)
	case err == nil:
		return nil
	case !errors.Is(err, unix.ENOENT):
		return err
	}
	err = unix.Mknodat(parent, path.Base(name), unix.S_IFCHR, 0)
	if errors.Is(err, unix.EPERM) {
		return errhint.With(fmt.Errorf("whiteout: %w", err), "an ordinary user can unpack this image on Linux 5.8 or newer; or do it as root")
	}
	return err
}

// opaque lets a directory hide everything below it.
func (t *tree) opaque(name string) error {
	opened, err := t.open(name)
	if err != nil {
		return err
	}
	defer opened.Close()
	return setOpaque(opened)
}

func opaqueAt(parent int, leaf string) error {
	fd, err := unix.Openat(parent, leaf, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), leaf)
	defer dir.Close()
	return setOpaque(dir)
}

func setOpaque(dir *os.File) error {
	fd := int(dir.Fd())
	err := unix.Fsetxattr(fd, opaqueByUser, []byte("y"), 0)
	if os.Geteuid() == 0 {
		byRoot := unix.Fsetxattr(fd, opaqueByRoot, []byte("y"), 0)
		if errors.Is(byRoot, unix.EPERM) { // root of a user namespace only
			byRoot = nil
		}
		err = errors.Join(err, byRoot)
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		return errhint.With(fmt.Errorf("opaque directory: %w", err), "put the state directory on a file system with extended attributes, such as ext4, xfs or btrfs")
	}
	return err
}
