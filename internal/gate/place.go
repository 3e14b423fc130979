package gate

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// place is one step at its open directories.
type place struct {
	*applier
	n    int
	s    *step
	dir  *os.File // of the path
	leaf string
	tdir *os.File // of the temporary name
	temp string
}

func (a *applier) openPlace(n int) (*place, error) {
	p := &place{applier: a, n: n, s: &a.b.steps[n]}
	var err error
	if p.dir, p.leaf, err = a.base.parent(p.s.Path); err != nil {
		return nil, err
	}
	if p.tdir, p.temp, err = a.base.parent(a.b.tempPath(n)); err != nil {
		return nil, errors.Join(err, p.dir.Close())
	}
	return p, nil
}

func (p *place) close() { _, _ = p.dir.Close(), p.tdir.Close() }

// rename gives what is under the temporary name the path; with RENAME_EXCHANGE what
// is at the path gets the temporary name.
func (p *place) rename(flags uint) error {
	return unix.Renameat2(int(p.tdir.Fd()), p.temp, int(p.dir.Fd()), p.leaf, flags)
}

// moveToTemp moves what is at the path to the temporary name.
func (p *place) moveToTemp() error {
	return unix.Renameat2(int(p.dir.Fd()), p.leaf, int(p.tdir.Fd()), p.temp, unix.RENAME_NOREPLACE)
}

func (p *place) conflict(err error) error {
	return errors.Join(&ConflictError{[]string{p.s.Path}}, err)
}

// create gives a new file its name, if the name is free.
func (p *place) create() error {
	err := p.rename(unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		return p.conflict(nil)
	}
	return err
}

// placeDir makes or removes a directory. One that the host made too is as good, and
// one that has files in it stays.
func (p *place) placeDir() error {
	if p.s.After == nil {
		return p.removeDir()
	}
	err := p.makeDir(p.s.After)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	if now, err := look(p.dir, p.leaf); err != nil || now == nil || now.Type != typeDir {
		return p.conflict(err)
	}
	return nil
}

func (p *place) removeDir() error {
	err := unix.Unlinkat(int(p.dir.Fd()), p.leaf, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

func (p *place) makeDir(c *content) error {
	if err := unix.Mkdirat(int(p.dir.Fd()), p.leaf, 0o700); err != nil {
		return err
	}
	err := ignoreEPERM(unix.Fchownat(int(p.dir.Fd()), p.leaf, int(c.UID), int(c.GID), unix.AT_SYMLINK_NOFOLLOW))
	return errors.Join(err, unix.Fchmodat(int(p.dir.Fd()), p.leaf, c.Mode, 0))
}

// remove takes a file out of the way, and looks at what it took.
func (p *place) remove() error {
	if err := p.moveToTemp(); err != nil {
		return p.conflict(err)
	}
	p.testHook("exchanged")
	return p.check()
}

// exchange swaps the new file and the old one, and looks at what it got: nothing is
// overwritten that was not seen.
func (p *place) exchange() error {
	if err := p.rename(unix.RENAME_EXCHANGE); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return p.conflict(err)
		}
		return err
	}
	p.testHook("exchanged")
	return p.check()
}

// check looks at what is under the temporary name now.
func (p *place) check() error {
	got, err := look(p.tdir, p.temp)
	if err != nil || !got.same(p.s.Before, true) {
		return p.conflict(err) // taking back puts it where it was
	}
	return nil
}
