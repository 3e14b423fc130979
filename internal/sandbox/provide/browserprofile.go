package provide

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// removeProfile removes the profile of a browser whose sandbox is gone.
func (a *Installation) removeProfile(entry *sandbox.Entry) error {
	dir := plan.ProfileDir(a.Paths.AtollState, entry.SessionKey)
	return a.whileNoneIsMade(dir, func() error { return os.RemoveAll(dir) })
}

// removeLeftProfiles removes the profiles that no browser's sandbox uses.
func (a *Installation) removeLeftProfiles(ctx context.Context) error {
	root := filepath.Join(a.Paths.AtollState, plan.BrowserDir)
	found, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	var problems []error
	for _, entry := range found {
		dir := filepath.Join(root, entry.Name())
		err := a.whileNoneIsMade(dir, func() error { return a.removeUnused(ctx, dir) })
		if !errors.Is(err, sandbox.ErrBusy) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// removeUnused removes a profile, unless its browser has a sandbox.
func (a *Installation) removeUnused(ctx context.Context, dir string) error {
	if used, err := a.usedProfiles(ctx); err != nil || used[dir] {
		return err
	}
	return os.RemoveAll(dir)
}

// usedProfiles returns the directories of profiles whose browsers have a sandbox.
func (a *Installation) usedProfiles(ctx context.Context) (map[string]bool, error) {
	entries, err := a.Registry.List(ctx, 0)
	used := map[string]bool{}
	for _, e := range entries {
		if e.Kind == sandbox.KindBrowser {
			used[plan.ProfileDir(a.Paths.AtollState, e.SessionKey)] = true
		}
	}
	return used, err
}
