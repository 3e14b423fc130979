package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// errStopped ends a walk whose caller wants no more.
var errStopped = errors.New("stopped")

// Changes returns what the sandbox has that the base has not, and what it no
// longer has, directories included, each directory before what is in it. It can
// be read while the sandbox runs. An error ends it.
func (t *Tree) Changes(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if err := t.read(ctx, MaxEntries, yield); err != nil && !errors.Is(err, errStopped) {
			yield(Change{}, fmt.Errorf("changes above %q: %w", t.Base, err))
		}
	}
}

// read hands the changes to yield; an error if there are more entries than most.
func (t *Tree) read(ctx context.Context, most int, yield func(Change, error) bool) error {
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
	applied, err := t.applied()
	if err != nil {
		return err
	}
	r := &reader{ctx: ctx, tree: t, base: base, yield: yield, left: most, hidden: t.hiddenPaths(), applied: applied}
	if t.Kind == Kernel {
		return r.upperDir(layers{above: above, lower: base, here: base}, "", 0)
	}
	if r.manifest, err = openManifest(filepath.Join(t.Dir, treeManifest)); err != nil {
		return err
	}
	defer r.manifest.close()
	return r.copyDir(copied{dir: above, here: base})
}

func (t *Tree) hiddenPaths() map[string]string {
	paths := make(map[string]string, len(t.Hidden))
	for _, h := range t.Hidden {
		paths[h.Path] = h.SHA256
	}
	return paths
}

// reader is one walk for changes.
type reader struct {
	ctx      context.Context
	tree     *Tree
	base     *os.File
	yield    func(Change, error) bool
	left     int // entries that may still be looked at
	hidden   map[string]string
	applied  map[string]appliedLine
	manifest *manifest // of a copy
	// appliedIn are the names of what was applied, by directory; nil until it is needed.
	appliedIn map[string][]string
}

// emit hands a change to the caller.
func (r *reader) emit(c Change) error {
	_, hidden := r.hidden[c.Path]
	c.Hidden = c.Hidden || hidden
	c.Torn = r.tree.Torn
	if len(c.Path) > MaxPath {
		c.Kind, c.Note = Special, fmt.Sprintf("its path is longer than %d bytes", MaxPath)
	}
	if !r.yield(c, nil) {
		return errStopped
	}
	return nil
}

// special reports what cannot be applied.
func (r *reader) special(at string, mode uint32, note string) error {
	return r.emit(Change{Path: at, Kind: Special, Mode: fileMode(mode), Note: note})
}

// unseen reports an entry that could not be examined. One that is gone by now is
// no change.
func (r *reader) unseen(at string, mode uint32, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errMark):
		return r.special(at, mode, errMark.Error())
	case errors.Is(err, fs.ErrPermission) || isExchanged(err):
		return r.special(at, mode, "it cannot be read: "+err.Error())
	}
	return err
}

// names reads the names of a directory within what may still be looked at.
func (r *reader) names(dir *os.File) ([]string, error) {
	if dir == nil {
		return nil, nil
	}
	names, err := sortedNames(dir, r.left)
	if errors.Is(err, errTooMany) {
		err = fmt.Errorf("%w: too many are changed or deleted to list them", err)
	}
	r.left -= len(names)
	return names, errors.Join(err, r.ctx.Err())
}

// tooFar reports why a directory is not entered, or "".
func tooFar(at string, depth int) string {
	switch {
	case depth > MaxDepth:
		return fmt.Sprintf("more than %d directories within each other", MaxDepth)
	case len(at) > MaxPath:
		return fmt.Sprintf("its path is longer than %d bytes", MaxPath)
	}
	return ""
}

// baseStat returns what the base has under a name; nil if nothing.
func baseStat(here *os.File, name string) (*unix.Stat_t, error) {
	if here == nil {
		return nil, nil
	}
	st, err := statAt(here, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return &st, nil
}

// deleted reports that an entry of the base is gone, and all that is in it.
func (r *reader) deleted(here *os.File, name, at string) error {
	st, err := baseStat(here, name)
	if err != nil {
		return r.unseen(at, 0, err)
	}
	if st == nil || r.appliedGone(at) {
		return nil
	}
	if err := r.emit(Change{Path: at, Kind: Deleted, OldMode: fileMode(st.Mode), Size: st.Size}); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	return r.deletedIn(here, name, at)
}

// deletedIn reports everything in a directory of the base as deleted.
func (r *reader) deletedIn(here *os.File, name, at string) error {
	dir, err := openDirAt(here, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || isExchanged(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer dir.Close()
	names, err := r.names(dir)
	if err != nil {
		return err
	}
	for _, below := range names {
		if err := r.deleted(dir, below, path.Join(at, below)); err != nil {
			return err
		}
	}
	return nil
}

// isExchanged reports whether a directory became something else meanwhile.
func isExchanged(err error) bool {
	return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR)
}
