package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// Refresh is called while the sandbox is stopped. It makes the base as it is now
// what the agent begins with, except where the agent has changes of its own: those
// keep the state that they began with. It returns how many files were brought
// up to date. hide is that of Request, for files that are new.
func (t *Tree) Refresh(ctx context.Context, hide HideFunc) (int, error) {
	release, err := holdDir(ctx, path.Dir(t.Dir))
	if err != nil {
		return 0, err
	}
	defer release()
	now, err := Load(t.Dir) // a follower may have hidden more since
	if err != nil {
		return 0, err
	}
	t.Hidden = now.Hidden
	if err := t.Reconcile(ctx); err != nil {
		return 0, err
	}
	changed := map[string]bool{}
	for c, err := range t.Changes(ctx) {
		if err != nil {
			return 0, err
		}
		changed[c.Path] = true
	}
	edits, err := t.hostEdits(ctx)
	if err != nil {
		return 0, err
	}
	edits = slices.DeleteFunc(edits, func(rel string) bool { return changed[rel] })
	covers, err := t.Covers(ctx, edits, hide)
	if err != nil {
		return 0, err
	}
	err = t.bringIn(ctx, edits, covers)
	if err != nil {
		return 0, fmt.Errorf("refresh the overlay of %q: %w", t.Base, err)
	}
	if len(edits) == 0 {
		return 0, nil
	}
	if t.Kind == Copy {
		time.Sleep(tick) // what was written a moment ago cannot be noted
	}
	return len(edits), errors.Join(t.NoteApplied(edits...), t.save())
}

// hostEdits returns everything of the base that is not as the agent began with,
// directories too.
func (t *Tree) hostEdits(ctx context.Context) ([]string, error) {
	return t.hostWalk(ctx, hostWalk{limit: MaxBase, dirs: true})
}

// bringIn brings edits of the host to where the sandbox sees them.
func (t *Tree) bringIn(ctx context.Context, edits []string, covers map[string]Cover) error {
	base, err := t.openBase()
	if err != nil {
		return err
	}
	defer base.Close()
	above, err := hostpath.OpenDir(t.above())
	if err != nil {
		return err
	}
	defer above.Close()
	b := bringer{t, base, above, covers, t.hiddenPaths()}
	for _, rel := range edits {
		if err := errors.Join(ctx.Err(), b.one(rel)); err != nil {
			return fmt.Errorf("%.300q: %w", rel, err)
		}
	}
	return nil
}

// bringer brings edits of the host in.
type bringer struct {
	tree   *Tree
	base   *os.File
	above  *os.File
	covers map[string]Cover
	hidden map[string]string
}

// one hides a file that has to be hidden, and copies another one to a copy. Below
// a kernel overlay it is visible already.
func (b bringer) one(rel string) error {
	if _, hidden := b.hidden[rel]; hidden {
		return nil
	}
	r, err := reach(b.base, rel)
	if err != nil {
		return err
	}
	defer closeFile(r.dir)
	if r.path != rel {
		r.st = nil // a directory above is gone, too
	}
	if cover := b.covers[rel]; cover.Hide && b.tree.Kind == Kernel {
		return b.tree.coverUpper(b.base, b.above, rel, cover)
	} else if cover.Hide {
		return b.tree.coverCopy(b.above, rel, cover)
	}
	if b.tree.Kind == Kernel {
		return nil
	}
	return b.copyOne(rel, r)
}

// copyOne makes the copy have what the base has at a path.
func (b bringer) copyOne(rel string, r reached) error {
	if r.st == nil {
		return b.remove(rel)
	}
	below, above, err := sameDirs(b.base, b.above, path.Dir(rel))
	defer closeFile(below)
	defer closeFile(above)
	if err != nil {
		return err
	}
	name := path.Base(rel)
	if err := removeOther(above, name, r.st); err != nil {
		return err
	}
	switch r.st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		dir, err := makeDirAt(above, name, below)
		closeFile(dir)
		return err
	case unix.S_IFLNK:
		text, err := linkAt(r.dir, name)
		if err != nil {
			return err
		}
		return errors.Join(b.remove(rel), unix.Symlinkat(text, int(above.Fd()), name))
	case unix.S_IFREG:
		return copyFile(r, above)
	}
	return nil // what is special in the base is not copied
}

// removeOther removes an entry of another type than the one that takes its place.
func removeOther(dir *os.File, name string, next *unix.Stat_t) error {
	st, err := statAt(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil || st.Mode&unix.S_IFMT == next.Mode&unix.S_IFMT {
		return err
	}
	return removeAt(dir, name)
}

// copyFile replaces a file in a directory of the copy by the base's.
func copyFile(r reached, dir *os.File) error {
	name := path.Base(r.path)
	from, err := openFileAt(r.dir, name)
	if err != nil {
		return err
	}
	defer from.Close()
	options := hostpath.WriteOptions{Mode: fs.FileMode(r.st.Mode & 0o777), Owner: ownerLike(r.st), Replace: true}
	if _, err := hostpath.WriteBeneath(dir, name, from, options); err != nil {
		return err
	}
	return unix.UtimesNanoAt(int(dir.Fd()), name, []unix.Timespec{r.st.Mtim, r.st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

// remove removes what the copy has at a path: a file, a link, or a directory in
// which the agent has nothing of its own.
func (b bringer) remove(rel string) error {
	dir, err := hostpath.OpenBeneath(b.above, path.Dir(rel), unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer dir.Close()
	return removeAt(dir, path.Base(rel))
}

// removeAt removes an entry of a directory with all that is in it.
func removeAt(dir *os.File, name string) error {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if !errors.Is(err, unix.EISDIR) {
		return err
	}
	sub, err := openDirAt(dir, name)
	if err != nil {
		return err
	}
	defer sub.Close()
	names, err := sortedNames(sub, MaxBase)
	for _, below := range names {
		err = errors.Join(err, removeAt(sub, below))
	}
	return errors.Join(err, unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR))
}
