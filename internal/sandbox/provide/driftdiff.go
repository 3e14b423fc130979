package provide

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
	"github.com/atoll-run/atoll/internal/tool/diff"
)

// DriftDiffs returns the drift of a sandbox, and of each of its files what differs between
// the agent workspace as it is now and the copy.
func (a *Installation) DriftDiffs(ctx context.Context, name string) (workspace.Drift, []FileDiff, error) {
	entry, err := a.Registry.Get(ctx, name)
	if err != nil {
		return workspace.Drift{}, nil, err
	}
	agent, err := a.Config.Resolve(entry.AgentID)
	if err != nil {
		return workspace.Drift{}, nil, nil // it is no longer configured: there is nothing to compare with
	}
	layout, ok := a.seededLayout(agent, entry)
	if !ok {
		return workspace.Drift{}, nil, nil
	}
	drift, err := workspace.DriftOf(layout)
	if err != nil {
		return drift, nil, err
	}
	return drift, diffsOf(layout, drift), nil
}

// diffsOf compares the files of a drift.
func diffsOf(l workspace.Layout, drift workspace.Drift) (list []FileDiff) {
	c := newComparison(l, workspace.ChangeList{})
	defer c.close()
	names := slices.Concat(drift.Modified, drift.Deleted, drift.Stale)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		f := FileDiff{Change: workspace.Change{Path: name}}
		before, oldName, err := readSide(c.agent, name)
		after, newName, copyErr := readSide(c.copy, name)
		if err = errors.Join(err, copyErr); err != nil {
			f.Note = "it cannot be compared: " + err.Error()
		} else {
			f.Diff = diff.Unified(oldName, newName, before, after, maxFileDiff)
		}
		list = append(list, f)
	}
	return list
}

// readSide reads a file that may not be there.
func readSide(dir *os.File, name string) ([]byte, string, error) {
	if dir == nil {
		return nil, diff.DevNull, nil
	}
	data, err := hostpath.ReadRegularBeneath(dir, name, maxDiffFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diff.DevNull, nil
	}
	return data, name, err
}
