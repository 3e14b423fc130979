package gate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// finish keeps what was there before, and ends a batch that is placed. It may be
// repeated.
func (a *applier) finish() error {
	a.testHook("placed")
	if err := os.MkdirAll(a.undoDir(a.b.id), dirMode); err != nil {
		return err
	}
	for n := range a.b.steps {
		if err := a.keepOne(n); err != nil {
			return fmt.Errorf("keep what was at %q: %w", a.b.steps[n].Path, err)
		}
		a.testHook("kept one")
	}
	if err := errors.Join(syncDir(a.undoDir(a.b.id)), a.syncDirs()); err != nil {
		return err
	}
	a.testHook("kept")
	if err := a.noteAll(false); err != nil {
		return err
	}
	a.testHook("noted")
	a.b.result = ResultApplied
	if err := a.journal.add(record{Phase: ended, ID: a.b.id, Result: ResultApplied, Left: a.left}); err != nil {
		return err
	}
	a.testHook("ended")
	return nil
}

// noteAll makes what the batch left count as begun, where it is there: with back,
// what was there before, else what the batch applied. What the host changed since is
// not noted.
func (a *applier) noteAll(back bool) error {
	var paths []string
	for n := range a.b.steps {
		s := &a.b.steps[n]
		now, err := a.base.lookAt(s.Path)
		if err != nil {
			continue // it is not what the batch left
		}
		if left := a.leftOf(n, back); left.isNow(now) {
			paths = append(paths, s.Path)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	return a.opt.Source.NoteApplied(paths...)
}

// leftOf returns what a step left, with the file that it is.
func (a *applier) leftOf(n int, back bool) *content {
	s := &a.b.steps[n]
	if back || s.After == nil {
		if back {
			return s.Before
		}
		return nil
	}
	left := *s.After
	left.ID = a.b.new[n]
	return &left
}

// isNow reports whether a path still has what was left there.
func (c *content) isNow(now *content) bool {
	switch {
	case c == nil || now == nil:
		return c == nil && now == nil
	case c.Type == typeDir:
		return now.Type == typeDir
	}
	return c.Type == now.Type && c.ID == now.ID && c.SHA256 == now.SHA256 && c.Link == now.Link
}

// keepOne moves the old file of a step to the undo directory.
func (a *applier) keepOne(n int) error {
	s := &a.b.steps[n]
	if s.Before == nil || s.Before.Type == typeDir {
		return nil
	}
	dir, temp, err := a.base.parent(a.b.tempPath(n))
	if isGone(err) {
		a.left = append(a.left, s.Path) // the host moved the directory away
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return a.keepAs(dir, temp, strconv.Itoa(n))
}

// keepAs moves a file to the undo directory; nothing is no error. On another file
// system a copy is there already, see copyOld, or is made.
func (a *applier) keepAs(dir *os.File, temp, name string) error {
	to := filepath.Join(a.undoDir(a.b.id), name)
	err := unix.Renameat(int(dir.Fd()), temp, unix.AT_FDCWD, to)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil // kept before
	case !errors.Is(err, unix.EXDEV):
		return err
	}
	if _, err := os.Lstat(to); err != nil {
		if err := copyOut(dir, temp, to); err != nil {
			return err
		}
	}
	return unix.Unlinkat(int(dir.Fd()), temp, 0)
}

// copyOld copies old files to an undo directory on another file system. It is done
// before the batch counts as placed: if that disk is full, the batch is taken back.
func (a *applier) copyOld() error {
	var base, undo unix.Stat_t
	err := errors.Join(unix.Fstat(int(a.base.root.Fd()), &base), unix.Stat(a.undoDir(a.b.id), &undo))
	if err != nil || base.Dev == undo.Dev {
		return err
	}
	for n := range a.b.steps {
		if s := &a.b.steps[n]; s.Before == nil || s.Before.Type == typeDir {
			continue
		}
		dir, temp, err := a.base.parent(a.b.tempPath(n))
		if err != nil {
			return err
		}
		err = copyOut(dir, temp, filepath.Join(a.undoDir(a.b.id), strconv.Itoa(n)))
		if err := errors.Join(err, dir.Close()); err != nil {
			return err
		}
	}
	return syncDir(a.undoDir(a.b.id))
}

// copyOut copies a file with its attributes, or a link.
func copyOut(dir *os.File, temp, to string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), temp, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return copyKept(dir, temp, to)
	}
	text, err := readLink(dir, temp)
	if err != nil {
		return err
	}
	return os.Symlink(text, to)
}

func copyKept(dir *os.File, temp, to string) error {
	from, st, err := openFile(dir, temp)
	if err != nil {
		return err
	}
	defer from.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	if err == nil {
		err = copyAttributes(file, from, st.Mtim.Nano())
	}
	return errors.Join(err, file.Sync(), file.Close())
}
