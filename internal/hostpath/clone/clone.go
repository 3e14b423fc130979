// Package clone copies a tree of files that somebody hostile may have made, and
// may still be changing: no link is followed, no pipe waited for, no device
// woken. Where the file system can, files share their blocks with the original,
// so that a gigabyte costs no more than its names.
//
// It knows no sandbox and no workspace, and keeps to the two directories it is
// given.
package clone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Options say how a tree is copied.
type Options struct {
	// SharedOnly refuses to copy a file whose blocks cannot be shared.
	SharedOnly bool
	// Overlay copies whiteouts and the marks of an overlay's upper directory.
	Overlay bool
	// Empty reports whether a directory is made without what is in it; nil: none is.
	Empty func(parent int, name string) bool
}

// MaxDepth is how many directories within each other are copied.
const MaxDepth = 500

var (
	// ErrNotShared means that the file system cannot share blocks.
	ErrNotShared = errors.New("the file system cannot share blocks between files")
	// ErrTooDeep means that there are too many directories within each other.
	ErrTooDeep = errors.New("too many directories within each other")
)

// Tree copies what is in from into to, which is empty. Sockets and devices are
// left out; hard links become files of their own.
func Tree(ctx context.Context, from, to *os.File, o Options) error {
	c := &copier{ctx: ctx, options: o, owner: os.Geteuid() == 0}
	return c.dir(int(from.Fd()), int(to.Fd()), 0)
}

type copier struct {
	ctx     context.Context
	options Options
	owner   bool // ownership can be kept
}

// dir copies the entries of one directory, and then its own properties: entries
// that are made change its time.
func (c *copier) dir(from, to, depth int) error {
	if depth > MaxDepth {
		return ErrTooDeep
	}
	names, err := namesIn(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := errors.Join(c.ctx.Err(), c.entry(from, to, name, depth)); err != nil {
			return fmt.Errorf("%.200q: %w", name, err)
		}
	}
	return c.like(from, to)
}

// like gives a directory the properties of another one.
func (c *copier) like(from, to int) error {
	var st unix.Stat_t
	if err := unix.Fstat(from, &st); err != nil {
		return err
	}
	return errors.Join(c.marks(from, to), c.properties(to, &st))
}

// namesIn reads a directory through a descriptor of its own.
func namesIn(dir int) ([]string, error) {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	return f.Readdirnames(-1)
}

func (c *copier) entry(from, to int, name string, depth int) error {
	var st unix.Stat_t
	err := unix.Fstatat(from, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil // removed meanwhile
	} else if err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return c.subdirectory(from, to, name, depth)
	case unix.S_IFREG:
		return c.file(from, to, name)
	case unix.S_IFLNK:
		return c.link(from, to, name, &st)
	case unix.S_IFIFO:
		return errors.Join(unix.Mknodat(to, name, unix.S_IFIFO|0o600, 0), c.atName(to, name, &st), unix.Fchmodat(to, name, st.Mode&0o7777, 0))
	case unix.S_IFCHR:
		if c.options.Overlay && st.Rdev == 0 {
			return unix.Mknodat(to, name, unix.S_IFCHR, 0)
		}
	}
	return nil
}

func (c *copier) subdirectory(from, to int, name string, depth int) error {
	source, err := unix.Openat(from, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(source)
	if err := unix.Mkdirat(to, name, 0o700); err != nil {
		return err
	}
	target, err := unix.Openat(to, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	if c.options.Empty != nil && c.options.Empty(from, name) {
		return c.like(source, target)
	}
	return c.dir(source, target, depth+1)
}

func (c *copier) file(from, to int, name string) (err error) {
	in, err := unix.Openat(from, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	source := os.NewFile(uintptr(in), name)
	defer source.Close()
	var st unix.Stat_t
	if err := unix.Fstat(in, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return err // exchanged meanwhile
	}
	out, err := unix.Openat(to, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	target := os.NewFile(uintptr(out), name)
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := c.content(source, target); err != nil {
		return err
	}
	return errors.Join(c.marks(in, out), c.properties(out, &st))
}

// content shares the blocks of a file, or copies them.
func (c *copier) content(source, target *os.File) error {
	err := unix.IoctlFileClone(int(target.Fd()), int(source.Fd()))
	if err == nil {
		return nil
	}
	if c.options.SharedOnly {
		return fmt.Errorf("%w (%w)", ErrNotShared, err)
	}
	_, err = io.Copy(target, source) // copy_file_range, where the kernel can
	return err
}

func (c *copier) link(from, to int, name string, st *unix.Stat_t) error {
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(from, name, target)
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(string(target[:n]), to, name); err != nil {
		return err
	}
	return c.atName(to, name, st)
}

// atName sets owner and time of what cannot be opened.
func (c *copier) atName(to int, name string, st *unix.Stat_t) error {
	var err error
	if c.owner {
		err = unix.Fchownat(to, name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW)
	}
	return errors.Join(err, unix.UtimesNanoAt(to, name, []unix.Timespec{st.Mtim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW))
}

// mode returns the permissions of a copy. A file that a sandbox may have written
// lends no rights; what is installed in a root keeps them.
func (c *copier) mode(st *unix.Stat_t) uint32 {
	if !c.options.Overlay && st.Mode&unix.S_IFMT == unix.S_IFREG {
		return st.Mode & 0o1777
	}
	return st.Mode & 0o7777
}

// properties come in this order: a change of owner takes bits away.
func (c *copier) properties(fd int, st *unix.Stat_t) error {
	var err error
	if c.owner {
		err = unix.Fchown(fd, int(st.Uid), int(st.Gid))
	}
	return errors.Join(err, unix.Fchmod(fd, c.mode(st)),
		unix.Futimes(fd, []unix.Timeval{unix.NsecToTimeval(st.Mtim.Nano()), unix.NsecToTimeval(st.Mtim.Nano())}))
}

// marks copies the attributes that make a directory opaque. Others are not
// worth their danger.
func (c *copier) marks(from, to int) error {
	if !c.options.Overlay {
		return nil
	}
	list := make([]byte, 4096)
	n, err := unix.Flistxattr(from, list)
	if err != nil {
		return nil // a file system without attributes has no marks
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list[:n]), "\x00"), "\x00") {
		if name != "user.overlay.opaque" && name != "trusted.overlay.opaque" {
			continue
		}
		value := make([]byte, 16)
		if n, err = unix.Fgetxattr(from, name, value); err != nil {
			return err
		}
		if err := unix.Fsetxattr(to, name, value[:n], 0); err != nil {
			return err
		}
	}
	return nil
}

// CanShare reports whether two files in a directory can share blocks.
func CanShare(dir *os.File) error {
	one, err := unix.Openat(int(dir.Fd()), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrNotShared, err)
	}
	defer unix.Close(one)
	two, err := unix.Openat(int(dir.Fd()), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrNotShared, err)
	}
	defer unix.Close(two)
	if _, err := unix.Write(one, make([]byte, 4096)); err != nil {
		return err
	}
	if err := unix.IoctlFileClone(two, one); err != nil {
		return fmt.Errorf("%w (%w)", ErrNotShared, err)
	}
	return nil
}
