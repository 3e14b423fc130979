package overlay

import (
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// layers are the directories that meet at one path of a kernel overlay.
type layers struct {
	above *os.File // in the upper; nil: nothing was changed in it
	lower *os.File // of the base, what shines through; nil: nothing does
	from  string   // the path of lower in the base
	here  *os.File // of the base, at the path itself; nil: no directory is there
}

func (l layers) close() {
	closeFile(l.above)
	closeFile(l.lower)
	closeFile(l.here)
}

// inPlace reports whether lower is the base's directory at the same path, so
// that what is only in lower did not change.
func (l layers) inPlace(at string) bool { return l.lower != nil && l.here != nil && l.from == at }

// upperDir reports the changes in one directory.
func (r *reader) upperDir(l layers, at string, depth int) error {
	above, err := r.names(l.above)
	if err != nil {
		return err
	}
	for _, name := range above {
		if err := r.upperEntry(l, name, path.Join(at, name), depth); err != nil {
			return err
		}
	}
	if l.inPlace(at) {
		return nil
	}
	moved, err := r.lowerOnly(l, above, at, depth)
	if err != nil {
		return err
	}
	return r.hereOnly(l, append(above, moved...), at)
}

// lowerOnly reports what shines through from another place of the base.
func (r *reader) lowerOnly(l layers, above []string, at string, depth int) ([]string, error) {
	names, err := r.names(l.lower)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, found := slices.BinarySearch(above, name); found {
			continue
		}
		if err := r.movedEntry(l, name, path.Join(at, name), depth); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// hereOnly reports what the base has at the path and the sandbox has not.
func (r *reader) hereOnly(l layers, there []string, at string) error {
	names, err := r.names(l.here)
	if err != nil {
		return err
	}
	slices.Sort(there)
	for _, name := range names {
		if _, found := slices.BinarySearch(there, name); found {
			continue
		}
		if err := r.deleted(l.here, name, path.Join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

// upperEntry reports one entry of the upper.
func (r *reader) upperEntry(l layers, name, at string, depth int) error {
	st, err := statAt(l.above, name)
	if err != nil {
		return r.unseen(at, 0, err)
	}
	switch {
	case isWhiteout(&st):
		if _, hidden := r.hidden[at]; hidden {
			return nil
		}
		return r.deleted(l.here, name, at)
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return r.enter(l, name, at, &st, depth+1)
	}
	return r.compare(file{dir: l.above, name: name, st: &st, at: at}, l.here)
}

// movedEntry reports one entry of the base that a directory's rename moved.
func (r *reader) movedEntry(l layers, name, at string, depth int) error {
	st, err := statAt(l.lower, name)
	if err != nil {
		return r.unseen(at, 0, err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		below := l
		below.above = nil
		return r.enter(below, name, at, &st, depth+1)
	}
	return r.compare(file{dir: l.lower, name: name, st: &st, at: at, from: path.Join(l.from, name)}, l.here)
}

// enter reports a directory and what is in it.
func (r *reader) enter(parent layers, name, at string, st *unix.Stat_t, depth int) error {
	if note := tooFar(at, depth); note != "" {
		return r.special(at, st.Mode, note)
	}
	l, err := r.open(parent, name)
	defer l.close()
	if err != nil {
		return r.unseen(at, st.Mode, err)
	}
	if err := r.directory(l, parent.here, name, at, st); err != nil {
		return err
	}
	return r.upperDir(l, at, depth)
}

// directory reports how a directory itself differs from the base.
func (r *reader) directory(l layers, here *os.File, name, at string, st *unix.Stat_t) error {
	old, err := baseStat(here, name)
	if err != nil {
		return r.unseen(at, st.Mode, err)
	}
	c := Change{Path: at, Mode: fileMode(st.Mode), Kind: Added}
	switch {
	case old == nil && l.lower != nil && l.from != at:
		c.Kind, c.From = Renamed, l.from
	case old == nil:
	case old.Mode&unix.S_IFMT != unix.S_IFDIR:
		c.Kind, c.OldMode = Replaced, fileMode(old.Mode)
	case old.Mode&0o7777 != st.Mode&0o7777:
		c.Kind, c.OldMode = Mode, fileMode(old.Mode)
	default:
		return nil
	}
	return r.emit(c)
}

// open opens the layers of a directory by the layers of its parent.
func (r *reader) open(parent layers, name string) (l layers, err error) {
	l.from = path.Join(parent.from, name)
	opaque := false
	if parent.above != nil {
		if l.above, err = openDirAt(parent.above, name); err != nil {
			return l, err
		}
		marks, err := r.tree.Marks.readMarks(l.above, parent.from, parent.lower != nil)
		if err != nil {
			return l, err
		}
		opaque = marks.opaque
		if marks.redirect != "" {
			l.from = marks.redirect
			l.lower = optionalDir(hostpath.OpenBeneath(r.base, l.from, unix.O_RDONLY|unix.O_DIRECTORY))
		}
	}
	if l.lower == nil && !opaque && parent.lower != nil && l.from == path.Join(parent.from, name) {
		l.lower = optionalDir(openDirAt(parent.lower, name))
	}
	if opaque {
		closeFile(l.lower)
		l.lower = nil
	}
	if parent.here != nil {
		l.here = optionalDir(openDirAt(parent.here, name))
	}
	return l, nil
}

// optionalDir returns a directory of the base that could be opened, or nil.
func optionalDir(dir *os.File, err error) *os.File {
	if err != nil {
		return nil
	}
	return dir
}
