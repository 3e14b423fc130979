package guest

import (
	"errors"
	"strings"
	"unsafe"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// fileMkdir makes a directory, or makes sure that there is one.
func (c *fileCall) fileMkdir(f *wire.File) error {
	return wire.WithPart(f.Change, func(change *wire.FileChange) error {
		err := c.files.do(func() error { return c.files.mkdir(&f.RootedPath, change) })
		if err != nil {
			return err
		}
		return c.result(struct{}{})
	})
}

func (g *fileServer) mkdir(p *wire.RootedPath, change *wire.FileChange) error {
	if p.Path == "." && change.MkdirAll { // it is there
		root, err := g.root(string(p.Root))
		if err == nil {
			root.close()
		}
		return err
	}
	mode := change.Mode
	if mode == 0 {
		mode = defaultDirMode
	}
	s, err := g.locateToChange(p, change.MkdirAll)
	if err != nil {
		return err
	}
	defer s.close()
	if !change.MkdirAll {
		return fileError(unix.Mkdirat(s.dir.fd, s.name, mode&0o777))
	}
	d, err := s.dir.makeAll(s.name, mode)
	if err != nil {
		return err
	}
	d.close()
	return nil
}

// makeAll opens a directory beneath, and makes it and those above it as needed.
func (d *dir) makeAll(rel string, mode uint32) (*dir, error) {
	at, err := d.descend(".")
	if err != nil {
		return nil, err
	}
	for element := range strings.SplitSeq(rel, "/") {
		if err := unix.Mkdirat(at.fd, element, mode&0o777); err != nil && !errors.Is(err, unix.EEXIST) {
			at.close()
			return nil, fileError(err)
		}
		below, err := at.descend(element)
		at.close()
		if err != nil {
			return nil, err
		}
		at = below
	}
	return at, nil
}

// fileRename moves a file or directory.
func (c *fileCall) fileRename(f *wire.File) error {
	if f.Change == nil || f.To == nil {
		return wire.Fail(wire.CodeInvalid, "the request lacks its operands")
	}
	if err := c.files.do(func() error { return c.files.rename(f) }); err != nil {
		return err
	}
	return c.result(struct{}{})
}

func (g *fileServer) rename(f *wire.File) error {
	from, err := g.locateToChange(&f.RootedPath, false)
	if err != nil {
		return err
	}
	defer from.close()
	if err := g.checkMoved(from, f.Change); err != nil {
		return err
	}
	to, err := g.locateToChange(f.To, f.Change.MkdirAll)
	if err != nil {
		return err
	}
	defer to.close()
	if err := to.checkReplaced(); err != nil {
		return err
	}
	if f.Change.NoReplace {
		err = renameNoReplace(from.dir.fd, from.name, to.dir.fd, to.name)
	} else {
		err = unix.Renameat(from.dir.fd, from.name, to.dir.fd, to.name)
	}
	if errors.Is(err, unix.EINVAL) {
		return wire.Fail(wire.CodeInvalid, "a directory cannot be moved into itself")
	}
	return fileError(err)
}

// checkMoved refuses to move what is refused elsewhere, or has changed.
func (g *fileServer) checkMoved(s *location, change *wire.FileChange) error {
	facts, err := s.look()
	if err != nil {
		return err
	}
	if facts.kind() != wire.KindDir || facts.mount {
		if err := facts.refuseIrregular(); err != nil {
			return err
		}
	}
	return g.requireVersion(s, facts, change.IfVersion)
}

// checkReplaced refuses to put something in the place of what is refused
// elsewhere. A directory can only be replaced by another, and only if empty:
// the kernel sees to that.
func (s *location) checkReplaced() error {
	facts, err := statAt(s.dir.fd, s.name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fileError(err)
	}
	if facts.kind() == wire.KindDir && !facts.mount {
		return nil
	}
	return facts.refuseIrregular()
}

// futimens sets an open file's times.
func futimens(fd int, when []unix.Timespec) error {
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&when[0])), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
