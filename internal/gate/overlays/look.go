package overlays

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gate"
	"github.com/atoll-run/atoll/internal/gate/take"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// Trees collects, stages and judges what changed in every overlay of a subject.
func (s *Service) Trees(ctx context.Context, of *api.SyncSubject) (*api.SyncTrees, error) {
	found, err := s.find(of)
	if err != nil {
		return nil, err
	}
	all := &api.SyncTrees{Trees: []api.SyncTree{}}
	for n, t := range found.trees {
		row, err := found.collect(ctx, n, t)
		if err != nil {
			return nil, explain(err)
		}
		all.Trees = append(all.Trees, *row)
	}
	return all, found.noteRun(all)
}

func (s *subject) collect(ctx context.Context, n int, t *overlay.Tree) (*api.SyncTree, error) {
	var offer *take.Offer
	var note string
	if n == 0 {
		offer, note = s.offer(ctx)
	}
	g, err := s.open(ctx, t, offer)
	if err != nil {
		return nil, err
	}
	defer g.Close() //nolint:errcheck // nothing was decided
	set, err := g.Collect(ctx)
	if err != nil {
		return nil, err
	}
	row := &api.SyncTree{
		ID: s.slug(), Tree: n, Note: note, Base: t.Base, Target: t.Target, Kind: string(t.Kind), Since: t.Since, Torn: t.Torn, Hidden: hidden(t), Hash: set.Hash, Entries: []api.SyncEntry{},
		Counts: api.SyncCounts{Pass: set.Count(gate.Pass), Approval: set.Count(gate.Approval), Blocked: set.Count(gate.Blocked), Conflict: set.Count(gate.Conflict)},
	}
	if offer != nil {
		row.Commits = commitsOf(offer)
	}
	row.Note = joinNotes(note, modulesNote(set.Modules))
	changed, all, err := t.CountHostChanged(ctx, maxCompared)
	if err != nil {
		return nil, err
	}
	row.HostChanged, row.HostPartly = changed, !all
	for i := range set.Entries {
		row.Entries = append(row.Entries, entryOf(&set.Entries[i]))
	}
	for _, group := range set.Withheld {
		row.Withheld = append(row.Withheld, api.SyncGroup(group))
		row.Counts.Withheld += group.Files
	}
	return row, nil
}

// modulesNote says what becomes of commits in submodules; "" if there are none.
func modulesNote(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("commits in submodules stay inside (%s), their files are listed as files; where commits shall be taken, start the agent in the submodule: `cd SUBMODULE && atoll shell`",
		text(strings.Join(names, ", ")))
}

func joinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
}

// maxCompared is how many entries of a base are compared with what the agent began
// with, so that a large base does not slow every call down.
const maxCompared = 5_000

// hidden counts the files that are not visible inside. Those that are shown without
// credentials are not among them.
func hidden(t *overlay.Tree) (n int) {
	for _, h := range t.Hidden {
		if h.SHA256 == "" {
			n++
		}
	}
	return n
}

// text returns a name from inside as text; bytes that are none become U+FFFD.
func text(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

func entryOf(e *gate.Entry) api.SyncEntry {
	row := api.SyncEntry{
		Path: text(e.Path), From: text(e.From), Kind: string(e.Kind), IsDir: e.Mode.IsDir() || e.Kind == overlay.Deleted && e.OldMode.IsDir(),
		Size: e.Size, SHA256: e.SHA256, Link: text(e.Link), Verdict: string(e.Verdict), Added: e.Added, Removed: e.Removed, Overridden: text(e.Overridden),
	}
	if e.Kind != overlay.Deleted {
		row.Mode = octal(e.Mode)
	}
	if e.Kind != overlay.Added {
		row.OldMode = octal(e.OldMode)
	}
	for _, f := range e.Reasons {
		row.Reasons = append(row.Reasons, api.SyncReason{Rule: f.Rule, Verdict: string(f.Verdict), Detail: text(f.Detail)})
	}
	return row
}

// octal returns the permissions of a file as chmod takes them.
func octal(mode fs.FileMode) string { return fmt.Sprintf("%04o", mode.Perm()) }

// Diff returns what changed in one file of the last collected set.
func (s *Service) Diff(ctx context.Context, of *api.SyncSubject, path string) (*api.SyncDiff, error) {
	return onGate(ctx, s, of, func(g *opened) (*api.SyncDiff, error) {
		diff, err := g.Diff(path)
		if err != nil {
			return nil, err
		}
		answer := &api.SyncDiff{Path: path, Diff: text(diff)}
		set, err := g.Last()
		if err != nil {
			return nil, err
		}
		for i := range set.Entries {
			if set.Entries[i].Path == path {
				answer.SHA256 = set.Entries[i].SHA256
			}
		}
		return answer, nil
	})
}

// History lists what was applied and undone, the newest first.
func (s *Service) History(ctx context.Context, of *api.SyncSubject) (*api.SyncHistory, error) {
	return onGate(ctx, s, of, func(g *opened) (*api.SyncHistory, error) {
		answer := &api.SyncHistory{Batches: []api.SyncBatch{}}
		for _, past := range g.History() {
			answer.Batches = append(answer.Batches, api.SyncBatch{ID: past.ID, Time: past.Time, By: past.By, Result: string(past.Result), Undoes: past.Undoes, Undoable: past.Undoable, Files: past.Files})
		}
		return answer, nil
	})
}
