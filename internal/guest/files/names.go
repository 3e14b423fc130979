package files

import (
	"errors"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// mkdir makes a directory. With MkdirAll an existing one is no error.
func (c *Call) mkdir(f *wire.File) error {
	return wire.WithPart(f.Change, func(change *wire.FileChange) error {
		err := c.files.do(func() error { return c.files.mkdir(&f.RootedPath, change) })
		if err != nil {
			return err
		}
		return c.result(struct{}{})
	})
}

func (g *Server) mkdir(p *wire.RootedPath, change *wire.FileChange) error {
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
	s, err := g.locateWritable(p, change.MkdirAll)
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

// rename renames a file or directory.
func (c *Call) rename(f *wire.File) error {
	if f.Change == nil || f.To == nil {
		return wire.Fail(wire.CodeInvalid, "the request lacks its operands")
	}
	if err := c.files.do(func() error { return c.files.rename(f) }); err != nil {
		return err
	}
	return c.result(struct{}{})
}

func (g *Server) rename(f *wire.File) error {
	from, err := g.locateWritable(&f.RootedPath, false)
	if err != nil {
		return err
	}
	defer from.close()
	if err := g.checkMoved(from, f.Change); err != nil {
		return err
	}
	to, err := g.locateWritable(f.To, f.Change.MkdirAll)
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

// checkMoved refuses to rename what is neither a directory nor a regular file, or is
// not in the expected version.
func (g *Server) checkMoved(s *location, change *wire.FileChange) error {
	info, err := s.stat()
	if err != nil {
		return err
	}
	if info.kind() != wire.KindDir || info.mount {
		if err := info.refuseIrregular(); err != nil {
			return err
		}
	}
	return g.requireVersion(s, info, change.IfVersion)
}

// checkReplaced refuses to replace what is neither a directory nor a regular file.
// The kernel lets a directory only be replaced by another one, and only if empty.
func (s *location) checkReplaced() error {
	info, err := statAt(s.dir.fd, s.name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fileError(err)
	}
	if info.kind() == wire.KindDir && !info.mount {
		return nil
	}
	return info.refuseIrregular()
}

// futimens sets an open file's times.
func futimens(fd int, when []unix.Timespec) error {
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&when[0])), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
