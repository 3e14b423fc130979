package gate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// ConflictError means that files of the host are not what they were: nothing was
// applied.
type ConflictError struct{ Paths []string }

func (e *ConflictError) Error() string {
	const shown = 5
	text := fmt.Sprintf("%q", e.Paths[:min(shown, len(e.Paths))])
	if more := len(e.Paths) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "changed on the host meanwhile, nothing was applied: " + text
}

// applier applies one batch.
type applier struct {
	*Gate
	b    *batch
	base *baseDir
	left []string // paths that something else changed in between
}

// apply applies a batch: all of it, or nothing.
func (g *Gate) apply(ctx context.Context, b *batch) error {
	base, err := g.openBase()
	if err != nil {
		return err
	}
	defer base.close()
	if err := os.Mkdir(g.undoDir(b.id), dirMode); err != nil {
		return err
	}
	b.new = map[int]inode{}
	if err := g.journal.add(record{Stage: begun, ID: b.id, By: b.by, Undoes: b.undoes, Steps: b.steps}); err != nil {
		return errors.Join(err, os.Remove(g.undoDir(b.id)))
	}
	g.at("begun")
	a := &applier{Gate: g, b: b, base: base}
	if err := a.placeAll(ctx); err != nil {
		return errors.Join(err, a.takeBack())
	}
	return a.finish()
}

// placeAll does the steps, wave by wave, and makes them durable.
func (a *applier) placeAll(ctx context.Context) error {
	for from := 0; from < len(a.b.steps); {
		to := from
		for to < len(a.b.steps) && a.b.steps[to].Wave == a.b.steps[from].Wave {
			to++
		}
		if err := a.placeWave(ctx, from, to); err != nil {
			return err
		}
		from = to
	}
	if err := a.syncDirs(); err != nil {
		return err
	}
	a.at("synced")
	return a.journal.add(record{Stage: placed, ID: a.b.id})
}

func (a *applier) placeWave(ctx context.Context, from, to int) error {
	fresh := map[int]inode{}
	for n := from; n < to; n++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if s := &a.b.steps[n]; s.After != nil && s.After.Type != typeDir {
			id, err := a.writeOne(n)
			if err != nil {
				return fmt.Errorf("%q: %w", s.Path, err)
			}
			fresh[n] = id
			a.at("written")
		}
	}
	if len(fresh) > 0 {
		if err := a.journal.add(record{Stage: ready, ID: a.b.id, New: fresh}); err != nil {
			return err
		}
		maps.Copy(a.b.new, fresh)
		a.at("ready")
	}
	for n := from; n < to; n++ {
		if err := a.placeOne(n); err != nil {
			return err
		}
		a.at("placed one")
	}
	return nil
}

func (a *applier) writeOne(n int) (inode, error) {
	dir, temp, err := a.base.parent(a.b.tempPath(n))
	if err != nil {
		return inode{}, err
	}
	defer dir.Close()
	return a.writeNew(dir, temp, &a.b.steps[n])
}

// placeOne does one step, if the host's file is still what it was.
func (a *applier) placeOne(n int) error {
	p, err := a.openPlace(n)
	if err != nil {
		return errors.Join(&ConflictError{[]string{a.b.steps[n].Path}}, err)
	}
	defer p.close()
	if p.s.isDir() {
		return p.placeDir()
	}
	now, err := look(p.dir, p.leaf)
	if err != nil || !now.same(p.s.Before, false) {
		return p.conflict(err)
	}
	a.at("looked")
	switch {
	case p.s.After == nil:
		return p.remove()
	case p.s.Before == nil:
		return p.create()
	}
	return p.exchange()
}

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

// unname moves what is at the path to the temporary name.
func (p *place) unname() error {
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
	err := mayChown(unix.Fchownat(int(p.dir.Fd()), p.leaf, int(c.UID), int(c.GID), unix.AT_SYMLINK_NOFOLLOW))
	return errors.Join(err, unix.Fchmodat(int(p.dir.Fd()), p.leaf, c.Mode, 0))
}

// remove takes a file out of the way, and looks at what it took.
func (p *place) remove() error {
	if err := p.unname(); err != nil {
		return p.conflict(err)
	}
	p.at("exchanged")
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
	p.at("exchanged")
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

// isGone reports whether a directory is not there, or is another file now.
func isGone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// syncDirs makes the names in all directories of the batch durable.
func (a *applier) syncDirs() error {
	dirs := map[string]bool{}
	for i := range a.b.steps {
		dirs[path.Dir(a.b.steps[i].Path)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		dir, _, err := a.base.parent(path.Join(name, "x"))
		if isGone(err) {
			continue // it was removed; the directory above has that
		}
		if err != nil {
			return err
		}
		if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
			return err
		}
	}
	return nil
}
