package guest

import (
	"errors"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// spot is a name in a directory, whether or not there is something. The name
// "." stands for the directory itself, which is then a root.
type spot struct {
	dir  *dir
	name string
}

func (s *spot) close()   { s.dir.close() }
func (s *spot) release() { s.dir.release() }

// locate opens the directory above a place.
func (g *filing) locate(p *wire.Place) (*spot, error) {
	if err := checkPlace(p); err != nil {
		return nil, err
	}
	root, err := g.root(string(p.Root))
	if err != nil {
		return nil, err
	}
	above, name := path.Split(string(p.Path))
	if above == "" {
		return &spot{root, name}, nil
	}
	defer root.close()
	d, err := root.descend(strings.TrimSuffix(above, "/"))
	if err != nil {
		return nil, err
	}
	return &spot{d, name}, nil
}

// locateToChange is locate for a place that is about to change. It makes the
// directories above it if asked to.
func (g *filing) locateToChange(p *wire.Place, mkdirAll bool) (*spot, error) {
	if p.ReadOnly {
		return nil, refuse(wire.CodeReadOnly)
	}
	if p.Path == "." {
		return nil, wire.Fail(wire.CodeInvalid, "the root itself cannot be changed")
	}
	s, err := g.locate(p)
	if wireErr, ok := errors.AsType[*wire.Error](err); !mkdirAll || !ok || wireErr.Code != wire.CodeFileNotFound {
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
	return &spot{d, name}, nil
}

// look tells what is there.
func (s *spot) look() (*facts, error) {
	name := s.name
	if name == "." {
		name = ""
	}
	facts, err := lookAt(s.dir.fd, name)
	if err != nil {
		return nil, fileError(err)
	}
	return facts, nil
}

// openRegular opens a regular file for reading. It is looked at first, so that
// no pipe is opened under its writer and no device woken, and again when it is
// open, because it may be another by then.
func (s *spot) openRegular() (int, *facts, error) {
	before, err := s.look()
	if err == nil {
		err = before.refuseIrregular()
	}
	if err != nil {
		return -1, nil, err
	}
	fd, err := s.dir.open(s.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return -1, nil, fileError(err)
	}
	after, err := lookAt(fd, "")
	if err == nil {
		err = after.refuseIrregular()
	}
	if err != nil {
		unix.Close(fd)
		return -1, nil, fileError(err)
	}
	return fd, after, nil
}

// openDir opens a directory for reading its names.
func (s *spot) openDir() (*dir, error) {
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
