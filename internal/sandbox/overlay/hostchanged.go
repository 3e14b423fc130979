package overlay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// HostChanged returns files of the base that are not what the agent began with,
// at most limit. It looks at all of the base.
func (t *Tree) HostChanged(ctx context.Context, limit int) ([]string, error) {
	return t.hostWalk(ctx, hostWalk{limit: limit})
}

// CountHostChanged counts files of the base that are not what the agent began with.
// It looks at most entries; all is false if the base has more. What is hidden from the
// agent does not count, nor does what git keeps for itself.
func (t *Tree) CountHostChanged(ctx context.Context, most int) (files int, all bool, err error) {
	found, err := t.hostWalk(ctx, hostWalk{limit: MaxBase, left: most, skipGit: true})
	for _, rel := range found {
		if !t.IsHidden(rel) {
			files++
		}
	}
	if errors.Is(err, errTooMany) {
		return files, false, nil
	}
	return files, err == nil, err
}

// hostWalk carries a walk out. What it found before an error is returned with it.
func (t *Tree) hostWalk(ctx context.Context, w hostWalk) ([]string, error) {
	root, err := t.openBase()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.loadNotes()
	if err != nil {
		return nil, err
	}
	w.ctx, w.tree, w.notes, w.applied, w.left = ctx, t, n, n.appliedByDir(), cmp.Or(w.left, MaxBase)
	if err := w.dir(root, "", 0); err != nil && !errors.Is(err, errStopped) {
		return w.found, fmt.Errorf("base %q: %w", t.Base, err)
	}
	return w.found, nil
}

// hostWalk is one walk for edits of the host.
type hostWalk struct {
	ctx   context.Context
	tree  *Tree
	notes *notes

	applied map[string]map[string]*entry // directory, name, what counts as begun; nil: nothing
	limit   int
	dirs    bool // list directories too
	skipGit bool // leave out what git keeps for itself
	left    int  // entries that are looked at; 0 is MaxBase
	found   []string
}

func (w *hostWalk) add(rel string) error {
	if len(w.found) >= w.limit {
		return errStopped
	}
	w.found = append(w.found, rel)
	return nil
}

func (w *hostWalk) dir(dir *os.File, rel string, depth int) error {
	names, err := sortedNames(dir, w.left)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	} else if err != nil || w.ctx.Err() != nil {
		return errors.Join(err, w.ctx.Err())
	}
	w.left -= len(names)
	noted, err := w.inDir(rel)
	if err != nil {
		return err
	}
	for _, name := range names {
		was, ok := noted[name]
		delete(noted, name)
		if w.skipGit && name == ".git" {
			continue
		}
		if err := w.entry(dir, name, path.Join(rel, name), notedEntry{was, ok}, depth); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(noted)) {
		if err := w.add(path.Join(rel, name)); err != nil {
			return err
		}
	}
	return nil
}

type notedEntry struct {
	entry
	ok bool
}

func (w *hostWalk) entry(dir *os.File, name, rel string, was notedEntry, depth int) error {
	st, err := statAt(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	same := false
	if was.ok {
		if same, err = w.tree.same(was.entry, reached{path: rel, dir: dir, st: &st}); err != nil {
			return err
		}
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !same && (w.dirs || !isDir) {
		if err := w.add(rel); err != nil {
			return err
		}
	}
	if !isDir || w.tree.leavesEmpty(name, dir) {
		return nil
	}
	below, err := openDirAt(dir, name)
	if err != nil || depth > MaxDepth {
		return nil //nolint:nilerr // it cannot be read inside either
	}
	defer below.Close()
	return w.dir(below, rel, depth+1)
}

// inDir returns what was in a directory, with what was applied since.
func (w *hostWalk) inDir(rel string) (map[string]entry, error) {
	found, err := w.notes.base.entries(rel)
	if err != nil {
		return nil, err
	}
	if found == nil {
		found = map[string]entry{}
	}
	for name, e := range w.applied[rel] {
		if e == nil {
			delete(found, name)
		} else {
			found[name] = *e
		}
	}
	return found, nil
}

func (n *notes) appliedByDir() map[string]map[string]*entry {
	all := map[string]map[string]*entry{}
	for at, line := range n.applied {
		dir, name := path.Split(at)
		dir = strings.TrimSuffix(dir, "/")
		if all[dir] == nil {
			all[dir] = map[string]*entry{}
		}
		all[dir][name] = line.Entry
	}
	return all
}
