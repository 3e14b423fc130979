package vm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/vm/profile"
	"github.com/atoll-run/atoll/internal/vm/takeover"
)

// Applied is what was applied to the files of this machine.
type Applied struct {
	ID    string   `json:"id,omitempty"` // undoes it
	Files []string `json:"files"`
	Left  []string `json:"left"`           // what waits for another decision
	Note  string   `json:"note,omitempty"` // what the gate inside was not told
}

// Choice is what a person wants to have applied: paths, or all that passes. With a reason
// also what needs approval is, by its path.
type Choice struct {
	Paths  []string
	All    bool
	Reason string
}

// Apply applies what passes the gate inside to the project. The content is that which the
// gate judged; anything else is refused.
func (m *Manager) Apply(ctx context.Context, c Choice) (*Applied, error) {
	v, _, err := m.running(ctx)
	if err != nil {
		return nil, err
	}
	i := &inside{ctx, v}
	trees, err := i.reviews()
	if err != nil {
		return nil, err
	}
	chosen, left, err := c.choose(trees)
	if err != nil || len(chosen) == 0 {
		return &Applied{Files: []string{}, Left: left}, err
	}
	changes, err := i.fetch(chosen)
	if err != nil {
		return nil, err
	}
	if again, err := i.reviews(); err != nil || !slices.EqualFunc(trees, again, func(a, b tree) bool { return a.ID == b.ID && a.Hash == b.Hash }) {
		return nil, errhint.With(errors.Join(errors.New("files changed meanwhile"), err), "look at `atoll sync status`, and apply again")
	}
	project, err := m.project()
	if err != nil {
		return nil, err
	}
	batch, err := takeover.Apply(project, m.appliedDir(), c.Reason, changes)
	if err != nil {
		return nil, err
	}
	return &Applied{batch.ID, batch.Names(), left, i.tell(batch, applyNotTold)}, nil
}

// Undo puts back what a batch changed. The gate inside is told, so that the agent's changes
// wait again.
func (m *Manager) Undo(ctx context.Context, id string) (*Applied, error) {
	project, err := m.project()
	if err != nil {
		return nil, err
	}
	batch, err := takeover.Undo(project, m.appliedDir(), id)
	if err != nil {
		return nil, err
	}
	undone := &Applied{Files: batch.Names(), Left: []string{}}
	v, _, err := m.running(ctx)
	if err != nil {
		undone.Note = undoNotTold
		return undone, nil //nolint:nilerr // the files are back
	}
	undone.Note = (&inside{ctx, v}).tell(batch, undoNotTold)
	return undone, nil
}

// project returns the directory of the project.
func (m *Manager) project() (string, error) {
	mounts, err := profile.Mounts(&m.Profile, m.Host)
	if err != nil {
		return "", err
	}
	return mounts[0].Source, nil
}

func (m *Manager) appliedDir() string { return filepath.Join(m.StateDir, "vm-applied", m.Profile.Name) }

// entry is a change that waits, with its path in the project.
type entry struct {
	*api.SyncEntry
	tree *tree
	path string
}

// choose returns the entries that are applied, and the paths of those that are not.
func (c *Choice) choose(trees []tree) (chosen []entry, left []string, err error) {
	left = []string{}
	found := map[string]bool{}
	for t := range trees {
		for n := range trees[t].Entries {
			e := entry{&trees[t].Entries[n], &trees[t], trees[t].path(trees[t].Entries[n].Path)}
			switch {
			case !c.All && !slices.Contains(c.Paths, e.path):
			case !c.takes(&e):
				left = append(left, e.path)
			case found[e.path]:
				return nil, nil, errhint.With(fmt.Errorf("%s was changed in two overlays", e.path), "reject it in one of them with `atoll sync reject`")
			default:
				chosen = append(chosen, e)
			}
			found[e.path] = found[e.path] || c.All || slices.Contains(c.Paths, e.path)
		}
	}
	for _, p := range c.Paths {
		if !found[p] {
			return nil, nil, errhint.With(fmt.Errorf("%s is no change that waits", p), "`atoll sync status` lists them")
		}
	}
	return chosen, left, nil
}

// takes reports whether an entry can be applied: it passes, or needs the approval that a
// reason is.
func (c *Choice) takes(e *entry) bool {
	switch {
	case e.Kind == "special" || e.Kind == "replaced" || e.Kind == "mode" && e.SHA256 == "":
		return false
	case e.Verdict == api.SyncApprove:
		return c.Reason != "" && !c.All
	}
	return e.Verdict == api.SyncPass
}
