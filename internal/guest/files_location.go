package guest

import (
	"errors"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// location is a name in a directory, whether or not there is something. The name
// "." stands for the directory itself, which is then a root.
type location struct {
	dir  *dir
	name string
	root bool // a root that is a file, and so a mount that is meant
}

func (s *location) close()   { s.dir.close() }
func (s *location) release() { s.dir.release() }

// locate opens the directory above a place.
func (g *fileServer) locate(p *wire.RootedPath) (*location, error) {
	if err := checkPlace(p); err != nil {
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

// fileRoot is a root that is no directory: a file that was mounted.
func (g *fileServer) fileRoot(name string) (*location, error) {
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

// locateToChange is locate for a place that is about to change. It makes the
// directories above it if asked to.
func (g *fileServer) locateToChange(p *wire.RootedPath, mkdirAll bool) (*location, error) {
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

// look tells what is there.
func (s *location) look() (*fileInfo, error) {
	name := s.name
	if name == "." {
		name = ""
	}
	facts, err := statAt(s.dir.fd, name)
	if err != nil {
		return nil, fileError(err)
	}
	facts.mount = facts.mount && !s.root
	return facts, nil
}

// openRegular opens a regular file for reading. It is looked at first, so that
// no pipe is opened under its writer and no device woken, and again when it is
// open, because it may be another by then.
func (s *location) openRegular() (int, *fileInfo, error) {
	before, err := s.look()
	if err == nil {
		err = before.refuseIrregular()
	}
	if err != nil {
		return -1, nil, err
	}
	fd, err := s.openBare(unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY)
	if err != nil {
		return -1, nil, fileError(err)
	}
	after, err := statAt(fd, "")
	if err == nil {
		after.mount = after.mount && !s.root
		err = after.refuseIrregular()
	}
	if err != nil {
		unix.Close(fd)
		return -1, nil, fileError(err)
	}
	return fd, after, nil
}

// openBare opens whatever is there.
func (s *location) openBare(flags int) (int, error) {
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

// openDir opens a directory for reading its names.
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
