package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// Reconcile takes out of an upper what is the same as in the base, or was when it
// was applied, so that the base shows again. Nothing may be mounted from it.
func (t *Tree) Reconcile(ctx context.Context) error {
	if t.Kind == Copy {
		return nil // Refresh brings newer files
	}
	base, err := t.openBase()
	if err != nil {
		return err
	}
	defer base.Close()
	upper, err := hostpath.OpenDir(t.Upper())
	if err != nil {
		return err
	}
	defer upper.Close()
	applied, err := readApplied(filepath.Join(t.Dir, appliedName))
	if err != nil {
		return err
	}
	d := dropper{&reader{ctx: ctx, tree: t, base: base, left: MaxEntries, hidden: t.hiddenPaths(), applied: applied}}
	if _, err := d.dir(layers{above: upper, lower: base, here: base}, "", 0); err != nil {
		return fmt.Errorf("reconcile the overlay of %q: %w", t.Base, err)
	}
	return nil
}

// dropper removes from an upper what is the same as in the base.
type dropper struct{ *reader }

// dir works on one directory that lies over the base's at the same path, and
// returns whether it is empty then.
func (d dropper) dir(l layers, at string, depth int) (bool, error) {
	names, err := d.names(l.above)
	if err != nil {
		return false, err
	}
	empty := true
	for _, name := range names {
		dropped, err := d.entry(l, name, path.Join(at, name), depth)
		if err != nil {
			return false, fmt.Errorf("%.300q: %w", path.Join(at, name), err)
		}
		empty = empty && dropped
	}
	return empty, nil
}

// entry removes one entry if it is the same as the base's.
func (d dropper) entry(l layers, name, at string, depth int) (bool, error) {
	if _, hidden := d.hidden[at]; hidden {
		return false, nil
	}
	st, err := statAt(l.above, name)
	if err != nil {
		return false, ignoreUnreadable(err)
	}
	old, err := baseStat(l.here, name)
	if err != nil {
		return false, ignoreUnreadable(err)
	}
	same := false
	switch {
	case isWhiteout(&st):
		same = old == nil || d.appliedGone(at)
	case d.appliedSame(file{st: &st, at: at}):
		same = true // the host's is newer
	case old == nil:
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return d.subdirectory(l, name, at, &st, depth+1)
	default:
		same, err = sameFile(l, name, &st, old)
	}
	if err != nil || !same {
		return false, err
	}
	return dropped(unix.Unlinkat(int(l.above.Fd()), name, 0))
}

// sameFile compares a file or link of the upper with the base's, mode included.
func sameFile(l layers, name string, st, old *unix.Stat_t) (bool, error) {
	if st.Mode != old.Mode || st.Uid != old.Uid || st.Gid != old.Gid {
		return false, nil
	}
	same, err := file{dir: l.above, name: name, st: st}.sameAs(reached{path: name, dir: l.here, st: old})
	if errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	return same, err
}

// subdirectory works on a directory if it lies over the base's at the same path.
func (d dropper) subdirectory(parent layers, name, at string, st *unix.Stat_t, depth int) (bool, error) {
	if tooFar(at, depth) != "" {
		return false, nil
	}
	l, err := d.open(parent, name)
	defer l.close()
	if err != nil || !l.inPlace(at) {
		return false, ignoreUnreadable(err)
	}
	empty, err := d.dir(l, at, depth)
	if err != nil || !empty {
		return false, err
	}
	var old unix.Stat_t
	if err := unix.Fstat(int(l.here.Fd()), &old); err != nil || old.Mode != st.Mode || old.Uid != st.Uid || old.Gid != st.Gid {
		return false, err
	}
	return dropped(unix.Unlinkat(int(parent.above.Fd()), name, unix.AT_REMOVEDIR))
}

// dropped reports whether an entry was removed. One in a directory that forbids it
// stays.
func dropped(err error) (bool, error) { return err == nil, ignoreUnreadable(err) }

// ignoreUnreadable drops errors of directories that are left as they are.
func ignoreUnreadable(err error) error {
	if errors.Is(err, errMark) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
