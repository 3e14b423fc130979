package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// An agent can make any number of files at any depth; a change list ends here
// and says that it did.
const (
	MaxChangeEntries = 10_000
	MaxChangeDepth   = 64
)

// ChangeKind is what happened to a file.
type ChangeKind string

// The kinds of change. Stale is the one that did not happen in the copy: its
// source in the agent workspace changed after seeding.
const (
	Added    ChangeKind = "added"
	Modified ChangeKind = "modified"
	Deleted  ChangeKind = "deleted"
	Stale    ChangeKind = "stale"
)

// Change is one file that is not as it was seeded.
type Change struct {
	Path string        `json:"path"` // below the copy, safe to print
	Kind ChangeKind    `json:"kind"`
	Type hostpath.Kind `json:"type,omitempty"` // of the file in the copy
	Size int64         `json:"size,omitempty"`
}

// ChangeList is every change of a copy, by path, as far as the limits allow.
type ChangeList struct {
	Changes   []Change `json:"changes"`
	Truncated bool     `json:"truncated,omitempty"` // there is more
}

// Changes compares a whole copy with what was put into it. Directories are not
// listed, only what is in them; skills count only where they are not as synced.
// A sandbox without a copy has no changes.
func Changes(ctx context.Context, l Layout) (ChangeList, error) {
	w, err := openView(l)
	if err != nil || w == nil {
		return ChangeList{}, err
	}
	defer w.close()
	walk := changeWalk{ctx: ctx, skills: w.root.loadSkills(), seeds: map[string]seedState{}, left: MaxChangeEntries}
	for _, name := range seedNames() {
		state, err := w.state(name)
		if err != nil {
			return ChangeList{}, err
		}
		walk.addSeed(name, state)
	}
	if err := walk.dir(w.copy, ""); err != nil {
		return ChangeList{}, copyError(l, err)
	}
	slices.SortFunc(walk.list.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind))
	})
	return walk.list, nil
}

// changeWalk is one walk through a copy.
type changeWalk struct {
	ctx    context.Context
	skills skillRecord
	seeds  map[string]seedState
	left   int // entries that may still be looked at
	list   ChangeList
}

func (w *changeWalk) add(c Change) { w.list.Changes = append(w.list.Changes, c) }

// addSeed notes what is known of a seed file without walking.
func (w *changeWalk) addSeed(name string, s seedState) {
	w.seeds[name] = s
	if s.deleted() {
		w.add(Change{Path: name, Kind: Deleted})
	}
	if s.stale() {
		w.add(Change{Path: name, Kind: Stale})
	}
}

// dir lists what is below an open directory. rel is "" for the copy itself.
func (w *changeWalk) dir(dir *os.File, rel string) error {
	for {
		names, err := nextNames(dir)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if w.left == 0 {
				w.list.Truncated = true
				return nil
			}
			w.left--
			if err := errors.Join(w.ctx.Err(), w.entry(dir, name, path.Join(rel, name))); err != nil {
				return err
			}
		}
	}
}

func (w *changeWalk) entry(dir *os.File, name, rel string) error {
	st, err := lstatAt(dir, name)
	if err != nil {
		return ignoreMissing(err) // gone since
	}
	kind, changed := w.compare(rel, st)
	if changed {
		w.add(Change{Path: printable(rel), Kind: kind, Type: hostpath.KindOf(st.Mode), Size: st.Size})
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return w.enter(dir, name, rel)
	}
	return nil
}

// compare compares one entry with what we put there.
func (w *changeWalk) compare(rel string, st unix.Stat_t) (ChangeKind, bool) {
	seed, isSeed := w.seeds[rel]
	switch {
	case isSeed && seed.seeded:
		return Modified, seed.modified()
	case isSeed:
		return Added, seed.modified()
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return Added, false
	case w.skills.knows(rel):
		return Modified, !w.skills.holds(rel, st)
	}
	return Added, true
}

// enter walks a directory, unless it is too deep, forbidden, or gone or
// exchanged for something else by now.
func (w *changeWalk) enter(parent *os.File, name, rel string) error {
	if depth(rel) >= MaxChangeDepth {
		w.list.Truncated = true
		return nil
	}
	dir, err := openDirAt(parent, name)
	switch {
	case errors.Is(err, fs.ErrPermission):
		w.list.Truncated = true
		return nil
	case err != nil && isRefusal(err):
		return nil
	case err != nil:
		return ignoreMissing(err)
	}
	defer closeAll(dir)
	return w.dir(dir, rel)
}

func depth(rel string) int { return strings.Count(rel, "/") + 1 }
