package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// tree is the directory that a layer is unpacked into. Every path is opened
// below its root without following any link, so that no entry of an archive
// can send a later one elsewhere.
type tree struct {
	root *os.File
	made func() error // asked before a directory is made that no entry names
	// opaqueTop says that the whole layer hides those below it, which an overlay
	// does not learn from a mark on its root.
	opaqueTop bool
	// The parent of the last entry: archives are written directory by directory.
	parentPath string
	parent     *os.File
}

func (t *tree) close() { t.forget() }

func (t *tree) forget() {
	if t.parent != nil {
		_ = t.parent.Close()
		t.parent = nil
	}
}

// dirOf opens the directory that name lies in; its descriptor is the tree's.
func (t *tree) dirOf(name string) (int, error) {
	dir := path.Dir(name)
	if t.parent == nil || t.parentPath != dir {
		opened, err := t.open(dir)
		if err != nil {
			return -1, err
		}
		t.forget()
		t.parentPath, t.parent = dir, opened
	}
	return int(t.parent.Fd()), nil
}

// open opens a directory and makes it, and those above it, where an archive
// forgot to mention them.
func (t *tree) open(dir string) (*os.File, error) {
	opened, err := hostpath.OpenBeneath(t.root, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil || dir == "." {
		return opened, err
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, hostpath.ErrNotDirectory) {
		return nil, refusal(err)
	}
	above, err := t.open(path.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	if err := t.made(); err != nil {
		return nil, err
	}
	if err := makeParent(int(above.Fd()), path.Base(dir)); err != nil {
		return nil, err
	}
	opened, err = hostpath.OpenBeneath(t.root, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	return opened, refusal(err)
}

// makeParent makes a directory that an archive did not mention. One that replaces a
// whiteout hides what the whiteout hid.
func makeParent(parent int, leaf string) error {
	var st unix.Stat_t
	err := unix.Fstatat(parent, leaf, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return makeDir(parent, leaf, 0o755)
	case err != nil:
		return err
	case !isWhiteout(st):
		return fmt.Errorf("a file %w", ErrConflict)
	}
	if err := errors.Join(unix.Unlinkat(parent, leaf, 0), makeDir(parent, leaf, 0o755)); err != nil {
		return err
	}
	return opaqueAt(parent, leaf)
}

func refusal(err error) error {
	switch {
	case errors.Is(err, hostpath.ErrSymlink):
		return ErrLinked
	case errors.Is(err, hostpath.ErrEscapes):
		return ErrEscapes
	case errors.Is(err, hostpath.ErrNotDirectory):
		return fmt.Errorf("a file %w", ErrConflict)
	}
	return err
}

func makeDir(parent int, leaf string, mode uint32) error {
	if err := unix.Mkdirat(parent, leaf, 0o700); err != nil {
		return err
	}
	return unix.Fchmodat(parent, leaf, mode, 0) // whatever the umask is; it was made just now
}

// clear makes room for a new entry. An archive may name a file twice; then the
// later one counts. It reports whether a whiteout was there.
func (t *tree) clear(parent int, leaf string) (wasWhiteout bool, err error) {
	var st unix.Stat_t
	err = unix.Fstatat(parent, leaf, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	t.forgetIfDir(st)
	flags := 0
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		flags = unix.AT_REMOVEDIR
	}
	err = unix.Unlinkat(parent, leaf, flags)
	if errors.Is(err, unix.ENOTEMPTY) {
		return false, fmt.Errorf("a directory with files %w", ErrConflict)
	}
	return isWhiteout(st), err
}

// forgetIfDir keeps a directory that goes away from being used by its descriptor.
func (t *tree) forgetIfDir(st unix.Stat_t) {
	var own unix.Stat_t
	if t.parent == nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || unix.Fstat(int(t.parent.Fd()), &own) != nil {
		return
	}
	if own.Ino == st.Ino && own.Dev == st.Dev {
		t.forget()
	}
}

func (t *tree) mkdir(name string, mode uint32) error {
	parent, err := t.dirOf(name)
	if err != nil {
		return err
	}
	leaf := path.Base(name)
	var st unix.Stat_t
	if unix.Fstatat(parent, leaf, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.Fchmodat(parent, leaf, mode, 0)
	}
	wasWhiteout, err := t.clear(parent, leaf)
	if err != nil {
		return err
	}
	if err := makeDir(parent, leaf, mode); err != nil || !wasWhiteout {
		return err
	}
	return opaqueAt(parent, leaf) // removed below, and made anew here
}

// create makes an empty file for writing.
func (t *tree) create(name string) (*os.File, error) {
	parent, err := t.dirOf(name)
	if err != nil {
		return nil, err
	}
	leaf := path.Base(name)
	if _, err := t.clear(parent, leaf); err != nil {
		return nil, err
	}
	fd, err := unix.Openat(parent, leaf, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), leaf), nil
}

func (t *tree) symlink(name, target string, mtime time.Time) error {
	parent, err := t.dirOf(name)
	if err != nil {
		return err
	}
	leaf := path.Base(name)
	if _, err := t.clear(parent, leaf); err != nil {
		return err
	}
	if err := unix.Symlinkat(target, parent, leaf); err != nil {
		return err
	}
	return setTime(parent, leaf, mtime)
}

// link makes a second name for a file that this layer has already.
func (t *tree) link(name, target string) error {
	if name == target {
		return fmt.Errorf("a hard link to itself: %w", ErrBadName)
	}
	source, err := hostpath.OpenBeneath(t.root, path.Dir(target), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("hard link to %.200q: %w", target, refusal(err))
	}
	defer source.Close()
	var st unix.Stat_t
	if err := unix.Fstatat(int(source.Fd()), path.Base(target), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("hard link to %.200q: %w", target, err)
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFLNK && kind != unix.S_IFIFO {
		return fmt.Errorf("hard link to %.200q: %w", target, ErrKind)
	}
	parent, err := t.dirOf(name)
	if err != nil {
		return err
	}
	if _, err := t.clear(parent, path.Base(name)); err != nil {
		return err
	}
	return unix.Linkat(int(source.Fd()), path.Base(target), parent, path.Base(name), 0)
}

func (t *tree) fifo(name string, mode uint32) error {
	parent, err := t.dirOf(name)
	if err != nil {
		return err
	}
	leaf := path.Base(name)
	if _, err := t.clear(parent, leaf); err != nil {
		return err
	}
	if err := unix.Mknodat(parent, leaf, unix.S_IFIFO|0o600, 0); err != nil {
		return err
	}
	return unix.Fchmodat(parent, leaf, mode, 0)
}
