package overlays

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// All returns what waits in every overlay of the installation, whoever it is of. Where
// that is not known any more, all that changed counts.
func (s *Service) All(ctx context.Context) ([]api.SyncOverlay, error) {
	dirs, err := filepath.Glob(filepath.Join(s.Paths.AtollState, "overlay", "*"))
	if err != nil {
		return nil, err
	}
	entries, err := s.Registry.List(ctx, 0)
	if err != nil {
		return nil, err
	}
	list := []api.SyncOverlay{}
	for _, dir := range dirs {
		tree, err := overlay.Load(filepath.Join(dir, "0"))
		if errors.Is(err, overlay.ErrNone) {
			continue
		} else if err != nil {
			return nil, err
		}
		row := api.SyncOverlay{ID: filepath.Base(dir), Base: tree.Base, Kind: string(tree.Kind)}
		row.Subject = s.subjectOf(row.ID, tree, entries)
		if err := s.count(ctx, &row, tree); err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, nil
}

// subjectOf returns whose overlays a slug names; nil if nobody is known to have them.
func (s *Service) subjectOf(slug string, tree *overlay.Tree, entries []*sandbox.Entry) *api.SyncSubject {
	candidates := []api.SyncSubject{{Directory: tree.Base}, {Agent: tree.Owner}, {}}
	if runs, err := s.RunOverlays(); err == nil {
		for i := range runs {
			candidates = append(candidates, api.SyncSubject{Run: runs[i].Run})
		}
	}
	for _, e := range entries {
		if policy.DirName(e.SessionKey) == slug {
			candidates = append(candidates, api.SyncSubject{Agent: e.AgentID, Session: e.SessionKey, Account: e.Account})
		}
	}
	for i := range candidates {
		if found, err := s.find(&candidates[i]); err == nil && found.slug() == slug {
			return &candidates[i]
		}
	}
	return nil
}

// count sets how much waits.
func (s *Service) count(ctx context.Context, row *api.SyncOverlay, tree *overlay.Tree) error {
	if row.Subject == nil {
		for _, err := range tree.Changes(ctx) {
			if err != nil {
				return err
			}
			row.Waiting++
		}
		return nil
	}
	trees, err := s.Trees(ctx, row.Subject)
	if err != nil {
		return err
	}
	for i := range trees.Trees {
		row.Waiting += len(trees.Trees[i].Entries)
	}
	commits := trees.Trees[0].Commits
	if commits == nil {
		if commits, err = s.commitsOf(ctx, row); err != nil {
			return err
		}
	}
	row.Commits = len(commits.Commits) + len(commits.Others)
	return nil
}

// commitsOf asks inside for commits, if the base is a repository.
func (s *Service) commitsOf(ctx context.Context, row *api.SyncOverlay) (*api.SyncCommits, error) {
	if _, err := checkout.At(row.Base); err != nil {
		return &api.SyncCommits{}, nil //nolint:nilerr // it is no repository
	}
	return s.Commits(ctx, row.Subject)
}

// Applied makes what the base of a subject has at these paths count as what the agent
// began with: it was applied, or put back, by another program. States are what that
// program left there; a path that is something else by now is skipped.
func (s *Service) Applied(ctx context.Context, of *api.SyncSubject, states map[string]string, stateOf func(*os.Root, string) (string, error)) (*api.SyncDone, error) {
	return onTree(s, of, func(_ *subject, t *overlay.Tree) (*api.SyncDone, error) {
		root, err := os.OpenRoot(t.Base)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		done := &api.SyncDone{Files: []string{}}
		for _, path := range slices.Sorted(maps.Keys(states)) {
			if now, err := stateOf(root, path); err == nil && now == states[path] && ctx.Err() == nil {
				done.Files = append(done.Files, path)
			}
		}
		return done, t.NoteApplied(done.Files...)
	})
}
