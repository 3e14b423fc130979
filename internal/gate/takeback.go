package gate

import (
	"errors"
	"fmt"
	"os"
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
	var restored []string
	for n := range slices.Backward(a.b.steps) {
		moved, err := a.takeBackOne(n)
		if err != nil {
			return fmt.Errorf("take back %q: %w", a.b.steps[n].Path, err)
		}
		if moved {
			restored = append(restored, a.b.steps[n].Path)
		}
		a.at("took back one")
	}
	if err := a.syncDirs(); err != nil {
		return err
	}
	if len(restored) > 0 {
		if err := a.opt.Source.NoteApplied(restored...); err != nil {
			return err
		}
	}
	a.at("took back")
	a.b.result = ResultTakenBack
	if err := a.journal.add(record{Stage: ended, ID: a.b.id, Result: ResultTakenBack, Left: a.left}); err != nil {
		return err
	}
	if len(a.left) == 0 {
		return os.RemoveAll(a.undoDir(a.b.id))
	}
	return nil
}

// takeBackOne undoes one step, if it was done; moved says that the host's own file
// was moved and is back as it was.
func (a *applier) takeBackOne(n int) (moved bool, err error) {
	p, err := a.openPlace(n)
	if isGone(err) {
		return false, nil // its directory was not made, or the host moved it away
	}
	if err != nil {
		return false, err
	}
	defer p.close()
	s := p.s
	switch {
	case s.isDir() && s.After != nil:
		return false, p.removeDir()
	case s.isDir():
		err := p.makeDir(s.Before)
		if errors.Is(err, unix.EEXIST) {
			return false, nil
		}
		return err == nil, err
	case s.After == nil:
		return p.putBack()
	case s.Before == nil:
		return false, p.uncreate()
	}
	return p.unexchange()
}

// dropTemp removes what is under the temporary name.
func (p *place) dropTemp() error { return unix.Unlinkat(int(p.tdir.Fd()), p.temp, 0) }

// ours reports whether a name is the new file of the step, unchanged.
func (p *place) ours(dir *os.File, name string) (bool, error) {
	id, known := p.b.new[p.n]
	got, err := look(dir, name)
	if err != nil || got == nil || !known {
		return false, err
	}
	return got.ID == id && got.SHA256 == p.s.After.SHA256 && got.Link == p.s.After.Link, nil
}

// putBack gives a removed file its name again.
func (p *place) putBack() (bool, error) {
	got, err := look(p.tdir, p.temp)
	if err != nil || got == nil {
		return false, err
	}
	err = p.rename(unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		return false, p.leave()
	}
	return err == nil && got.same(p.s.Before, true), err
}

// leave keeps what is under the temporary name, where the path has something else.
func (p *place) leave() error {
	p.applier.left = append(p.applier.left, p.s.Path)
	return p.keepAs(p.tdir, p.temp, strconv.Itoa(p.n))
}

// uncreate removes a new file, under whichever name it is.
func (p *place) uncreate() error {
	if got, err := look(p.tdir, p.temp); err != nil || got != nil {
		return errors.Join(err, p.dropTemp())
	}
	mine, err := p.ours(p.dir, p.leaf)
	if err != nil || !mine {
		return err
	}
	if err := p.unname(); err != nil {
		return err
	}
	if mine, err = p.ours(p.tdir, p.temp); err != nil || mine {
		return errors.Join(err, p.dropTemp())
	}
	_, err = p.putBack() // it was replaced in between
	return err
}

// unexchange swaps the old file and the new one back.
func (p *place) unexchange() (bool, error) {
	got, err := look(p.tdir, p.temp)
	if err != nil || got == nil {
		return false, err
	}
	if id, known := p.b.new[p.n]; !known || got.ID == id {
		return false, p.dropTemp() // it was not exchanged
	}
	mine, err := p.ours(p.dir, p.leaf)
	if err != nil {
		return false, err
	}
	if !mine {
		return false, p.leave() // the host's newer file has the name
	}
	if err := p.rename(unix.RENAME_EXCHANGE); err != nil {
		return false, err
	}
	if mine, err = p.ours(p.tdir, p.temp); err != nil || mine {
		return got.same(p.s.Before, true), errors.Join(err, p.dropTemp())
	}
	// The host replaced our file in between; its file gets the name again.
	if err := p.rename(unix.RENAME_EXCHANGE); err != nil {
		return false, err
	}
	return false, p.leave()
}
