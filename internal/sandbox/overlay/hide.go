package overlay

import (
	"context"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// Candidate is a regular file of the base that may have to be hidden.
type Candidate struct {
	Path string // relative to the base
	Size int64
	dir  *os.File
	name string
}

// Open opens the file for reading.
func (c Candidate) Open() (*os.File, error) { return openFileAt(c.dir, c.name) }

// Cover is what the sandbox sees in place of a file. The zero value is the file.
type Cover struct {
	Hide    bool
	Instead []byte // nil: nothing is there
}

// HideFunc decides which files of a base are not visible inside, by their paths. It
// calls walk, which calls look with every file once; a Candidate can be opened until
// look returns. On an error no file may be shown.
type HideFunc func(ctx context.Context, walk func(look func(Candidate)) error) (map[string]Cover, error)

// run calls the function; without one nothing is hidden.
func (hide HideFunc) run(ctx context.Context, walk func(look func(Candidate)) error) (map[string]Cover, error) {
	if hide == nil {
		return nil, walk(nil)
	}
	return hide(ctx, walk)
}

// Covers returns which of these paths are files of the base that a sandbox does not
// see as they are.
func (t *Tree) Covers(ctx context.Context, paths []string, hide HideFunc) (map[string]Cover, error) {
	if hide == nil {
		return nil, nil
	}
	root, err := t.openBase()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return hide(ctx, func(look func(Candidate)) error {
		for _, rel := range paths {
			if err := lookAt(root, rel, look); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// lookAt calls look with a path if that is a regular file of the base.
func lookAt(root *os.File, rel string, look func(Candidate)) error {
	r, err := reach(root, rel)
	if err != nil {
		return err
	}
	defer closeFile(r.dir)
	if r.st != nil && r.path == rel && entryOf(r.st).isRegular() {
		look(Candidate{Path: rel, Size: r.st.Size, dir: r.dir, name: path.Base(rel)})
	}
	return nil
}

// inOrder returns the paths of covers.
func inOrder(covers map[string]Cover) []string { return slices.Sorted(maps.Keys(covers)) }

// IsHidden reports whether a file of the base is recorded as not visible inside.
func (t *Tree) IsHidden(rel string) bool {
	return slices.ContainsFunc(t.Hidden, func(h Hidden) bool { return h.Path == rel })
}

// NoteHidden records files of the base that were removed in a running sandbox because
// they hold secrets, so that this is no change of the agent's. Where there is no
// whiteout it records nothing.
func (t *Tree) NoteHidden(ctx context.Context, paths []string) error {
	release, err := holdDir(ctx, path.Dir(t.Dir))
	if err != nil {
		return err
	}
	defer release()
	now, err := Load(t.Dir)
	if err != nil {
		return err
	}
	upper, err := hostpath.OpenDir(t.Upper())
	if err != nil {
		return err
	}
	defer upper.Close()
	for _, rel := range paths {
		r, err := reach(upper, rel)
		if err != nil {
			return err
		}
		closeFile(r.dir)
		if r.path == rel && r.st != nil && isWhiteout(r.st) && !now.IsHidden(rel) {
			now.Hidden = append(now.Hidden, Hidden{Path: rel})
		}
	}
	t.Hidden = now.Hidden
	return now.save()
}
