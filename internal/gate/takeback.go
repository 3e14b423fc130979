package gate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// takeBack puts the base back to what it was before a batch that is not placed, and
// ends the batch. It may be repeated. What something else changed meanwhile stays
// as it is, and the old file is kept in the undo directory.
func (a *applier) takeBack() error {
	if err := os.MkdirAll(a.undoDir(a.b.id), dirMode); err != nil {
		return err
	}
	for n := range slices.Backward(a.b.steps) {
		if err := a.takeBackOne(n); err != nil {
			return fmt.Errorf("take back %q: %w", a.b.steps[n].Path, err)
		}
		a.testHook("took back one")
	}
	if err := a.syncDirs(); err != nil {
		return err
	}
	if err := a.noteAll(true); err != nil {
		return err
	}
	a.testHook("took back")
	a.b.result = ResultTakenBack
	if err := a.journal.add(record{Phase: ended, ID: a.b.id, Result: ResultTakenBack, Left: a.left}); err != nil {
		return err
	}
	if len(a.left) == 0 {
		return os.RemoveAll(a.undoDir(a.b.id))
	}
	return nil
}

// takeBackOne undoes one step, if it was done.
func (a *applier) takeBackOne(n int) error {
	p, err := a.openPlace(n)
	if isGone(err) {
		return nil // its directory was not made, or the host moved it away
	}
	if err != nil {
		return err
	}
	defer p.close()
	switch {
	case p.s.isDir() && p.s.After != nil:
		return p.removeDir()
	case p.s.isDir():
		if err := p.makeDir(p.s.Before); !errors.Is(err, unix.EEXIST) {
			return err
		}
		return nil
	case p.s.After == nil:
		return p.putBack()
	case p.s.Before == nil:
		return p.uncreate()
	}
	return p.unexchange()
}

// dropTemp removes what is under the temporary name.
func (p *place) dropTemp() error { return unix.Unlinkat(int(p.tdir.Fd()), p.temp, 0) }

// ours reports whether a name is the new file of the step, unchanged.
func (p *place) ours(dir *os.File, name string) (bool, error) {
	_, known := p.b.new[p.n]
	got, err := look(dir, name)
	if err != nil || !known || got == nil {
		return false, err
	}
	return p.leftOf(p.n, false).isNow(got), nil
}

// putBack gives a removed file its name again.
func (p *place) putBack() error {
	err := p.rename(unix.RENAME_NOREPLACE)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil // it was not removed
	case errors.Is(err, unix.EEXIST):
		return p.leave()
	}
	return err
}

// leave keeps what is under the temporary name, where the path has something else.
func (p *place) leave() error {
	p.applier.left = append(p.applier.left, p.s.Path)
	copied := filepath.Join(p.undoDir(p.b.id), strconv.Itoa(p.n)) // perhaps not to its end
	if err := os.Remove(copied); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return p.keepAs(p.tdir, p.temp, strconv.Itoa(p.n))
}

// uncreate removes a new file, under whichever name it is.
func (p *place) uncreate() error {
	if err := p.dropTemp(); !errors.Is(err, unix.ENOENT) {
		return err
	}
	mine, err := p.ours(p.dir, p.leaf)
	if err != nil || !mine {
		return err
	}
	if err := p.moveToTemp(); err != nil {
		return err
	}
	if mine, err = p.ours(p.tdir, p.temp); err != nil || mine {
		return errors.Join(err, p.dropTemp())
	}
	return p.putBack() // it was replaced in between
}

// unexchange swaps the old file and the new one back.
func (p *place) unexchange() error {
	got, err := look(p.tdir, p.temp)
	if err != nil || got == nil {
		return err
	}
	if id, known := p.b.new[p.n]; !known || got.ID == id {
		return p.dropTemp() // it was not exchanged
	}
	mine, err := p.ours(p.dir, p.leaf)
	if err != nil {
		return err
	}
	if !mine {
		return p.leave() // the host's newer file has the name
	}
	if err := p.rename(unix.RENAME_EXCHANGE); err != nil {
		return err
	}
	if mine, err = p.ours(p.tdir, p.temp); err != nil || mine {
		return errors.Join(err, p.dropTemp())
	}
	// The host replaced our file in between; its file gets the name again.
	if err := p.rename(unix.RENAME_EXCHANGE); err != nil {
		return err
	}
	return p.leave()
}
