package files

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// remove removes a file or a directory tree. Links are removed, not followed.
func (c *Call) remove(f *wire.File) error {
	if f.Change == nil || f.Scan == nil {
		return wire.Fail(wire.CodeInvalid, "the request lacks its operands")
	}
	r := &remover{files: c.files, budget: newBudget(f.Scan)}
	err := r.remove(f)
	if codeIs(err, wire.CodeFileNotFound) && f.Change.Missing {
		err = nil
	}
	if err != nil {
		return err
	}
	return c.result(r.FileEnd)
}

// remover is one removal that runs.
type remover struct {
	files  *Server
	budget *budget
	totals
}

func (r *remover) remove(f *wire.File) error {
	var s *location
	var info *fileInfo
	err := r.files.do(func() (err error) {
		if s, err = r.files.locateWritable(&f.RootedPath, false); err != nil {
			return err
		}
		if info, err = s.stat(); err != nil {
			return err
		}
		if info.mount {
			return refuse(wire.CodeMount)
		}
		return r.files.requireVersion(s, info, f.Change.IfVersion)
	})
	if s != nil {
		defer s.release()
	}
	switch {
	case err != nil:
		return err
	case info.kind() != wire.KindDir:
		return r.files.do(func() error { return r.unlink(s.dir, s.name) })
	case !f.Change.Recursive:
		return r.files.do(func() error { return r.rmdir(s.dir, s.name) })
	}
	return r.tree(s, 1)
}

func (r *remover) unlink(d *dir, name string) error {
	err := unix.Unlinkat(d.fd, name, 0)
	if err == nil {
		r.Files++
	}
	return fileError(err)
}

func (r *remover) rmdir(d *dir, name string) error {
	err := unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR)
	if err == nil {
		r.Dirs++
	}
	return fileError(err)
}

// tree removes a directory tree.
func (r *remover) tree(s *location, depth int) error {
	if depth > r.budget.depth {
		return refuse(wire.CodeTooLarge)
	}
	var d *dir
	if err := r.files.do(func() (err error) { d, err = s.openDir(); return err }); err != nil {
		return err
	}
	defer d.release()
	for {
		dirs, some, err := r.clear(d)
		if err != nil {
			return err
		}
		if !some {
			return r.files.do(func() error { return r.rmdir(s.dir, s.name) })
		}
		for _, name := range dirs {
			if err := r.tree(&location{dir: d, name: name}, depth+1); err != nil {
				return err
			}
		}
	}
}

// clear removes the files among the first names of a directory. It returns the
// directories among them, and whether the directory had any name.
func (r *remover) clear(d *dir) (dirs []string, some bool, err error) {
	err = r.files.do(func() error {
		if _, err := unix.Seek(d.fd, 0, unix.SEEK_SET); err != nil {
			return fileError(err)
		}
		names, err := d.nextNames()
		if err != nil {
			return err
		}
		some = len(names) > 0
		for _, name := range names {
			if err := r.budget.spend(); err != nil {
				return err
			}
			switch err := unix.Unlinkat(d.fd, name, 0); {
			case err == nil:
				r.Files++
			case errors.Is(err, unix.EISDIR):
				dirs = append(dirs, name)
			case !errors.Is(err, unix.ENOENT):
				return fileError(err)
			}
		}
		return nil
	})
	return dirs, some, err
}
