package files

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// location is a name in an open directory, whether or not a file has that name. The
// name "." is the directory itself, which is then a root.
type location struct {
	dir  *dir
	name string
	root bool // a root that is a mounted file
}

func (s *location) close()   { s.dir.close() }
func (s *location) release() { s.dir.release() }

// locate opens the directory that contains a path.
func (g *Server) locate(p *wire.RootedPath) (*location, error) {
	if err := checkPath(p); err != nil {
		return nil, err
	}
	root, err := g.root(string(p.Root))
	if err != nil && p.Path == "." && codeIs(err, wire.CodeNotDir) {
		return g.fileRoot(string(p.Root))
	}
	if err != nil {
		return nil, err
	}
	above, name := path.Split(string(p.Path))
	if above == "" {
		return &location{dir: root, name: name}, nil
	}
	defer root.close()
	d, err := root.descend(strings.TrimSuffix(above, "/"))
	if err != nil {
		return nil, err
	}
	return &location{dir: d, name: name}, nil
}

// fileRoot returns the location of a root that is a mounted file, not a directory.
func (g *Server) fileRoot(name string) (*location, error) {
	above, base := path.Split(name)
	d, err := g.root(path.Clean(above))
	if err != nil {
		return nil, err
	}
	return &location{dir: d, name: base, root: true}, nil
}

func codeIs(err error, code wire.Code) bool {
	e, ok := errors.AsType[*wire.Error](err)
	return ok && e.Code == code
}

// locateWritable is locate for a path that is about to change. With mkdirAll it makes
// the directories above it.
func (g *Server) locateWritable(p *wire.RootedPath, mkdirAll bool) (*location, error) {
	if p.ReadOnly {
		return nil, refuse(wire.CodeReadOnly)
	}
	if p.Path == "." {
		return nil, wire.Fail(wire.CodeInvalid, "the root itself cannot be changed")
	}
	s, err := g.locate(p)
	if !mkdirAll || !codeIs(err, wire.CodeFileNotFound) {
		return s, err
	}
	root, err := g.root(string(p.Root))
	if err != nil {
		return nil, err
	}
	defer root.close()
	above, name := path.Split(string(p.Path))
	d, err := root.makeAll(strings.TrimSuffix(above, "/"), defaultDirMode)
	if err != nil {
		return nil, err
	}
	return &location{dir: d, name: name}, nil
}

// stat returns the attributes of the file at the location.
func (s *location) stat() (*fileInfo, error) {
	name := s.name
	if name == "." {
		name = ""
	}
	info, err := statAt(s.dir.fd, name)
	if err != nil {
		return nil, fileError(err)
	}
	info.mount = info.mount && !s.root
	return info, nil
}

// openRegular opens a regular file with one name for reading.
func (s *location) openRegular() (int, *fileInfo, error) {
	return s.openFile((*fileInfo).refuseIrregular)
}

// openFile opens a file for reading unless it is refused. It examines the file first, so that no
// pipe or device is opened, and again once it is open, because it may have been
// replaced in between.
func (s *location) openFile(refuse func(*fileInfo) error) (int, *fileInfo, error) {
	before, err := s.stat()
	if err == nil {
		err = refuse(before)
	}
	if err != nil {
		return -1, nil, err
	}
	fd, err := s.openAny(unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY)
	if err != nil {
		return -1, nil, fileError(err)
	}
	after, err := statAt(fd, "")
	if err == nil {
		after.mount = after.mount && !s.root
		err = refuse(after)
	}
	if err != nil {
		unix.Close(fd)
		return -1, nil, fileError(err)
	}
	return fd, after, nil
}

// openAny opens the file without examining it.
func (s *location) openAny(flags int) (int, error) {
	if !s.root {
		return s.dir.open(s.name, flags, 0)
	}
	fd, err := unix.Openat(s.dir.fd, s.name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := refuseKernel(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// openDir opens a directory for reading.
func (s *location) openDir() (*dir, error) {
	d, err := s.dir.descend(s.name)
	if err != nil {
		return nil, err
	}
	defer d.close()
	fd, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fileError(err)
	}
	return &dir{s.dir.files, fd}, nil
}
