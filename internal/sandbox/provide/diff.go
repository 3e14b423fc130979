package provide

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
	"github.com/atoll-run/atoll/internal/tool/diff"
)

const (
	// maxDiffFile is the largest file whose lines are compared.
	maxDiffFile = 1 << 20
	// maxFileDiff bounds the diff of one file, maxAllDiffs that of all.
	maxFileDiff = 128 << 10
	maxAllDiffs = 8 << 20
)

// FileDiff is one file of a private copy that is not as it was seeded.
type FileDiff struct {
	workspace.Change
	Diff string `json:"diff,omitempty"` // unified; "" if there is none to show
	Note string `json:"note,omitempty"` // why there is none, or what it compares with
}

// Differences are all of them.
type Differences struct {
	Dir       string     `json:"dir"` // the copy, on the host
	Changes   []FileDiff `json:"changes"`
	Truncated bool       `json:"truncated"` // there is more
}

// Diff compares a session's private copy of its workspace with what was put
// into it. It reads the host's files only, through nothing that the agent can
// bend, and needs no engine.
func (s *Settings) Diff(ctx context.Context, who Subject) (*Differences, error) {
	p, err := s.Plan(who)
	if err != nil {
		return nil, err
	}
	if p.Layout.Access == config.AccessOverlay {
		return nil, errhint.With(fmt.Errorf("agent %s works with an overlay on %s", p.Agent.ID, p.Layout.AgentDir), "use `atoll sync diff`")
	}
	if !p.Layout.HasCopy() {
		return nil, errhint.With(fmt.Errorf("agent %s works on its real files (sandbox.workspaceAccess is rw), so there is nothing to compare with", p.Agent.ID),
			"use git diff in "+p.Layout.WorkspaceDir)
	}
	list, err := workspace.Changes(ctx, p.Layout)
	if err != nil {
		return nil, err
	}
	c := newComparison(p.Layout, list)
	defer c.close()
	d := &Differences{Dir: p.Layout.SandboxDir, Changes: []FileDiff{}, Truncated: list.Truncated}
	left := maxAllDiffs
	for _, change := range list.Changes {
		f := c.compare(change, min(left, maxFileDiff))
		left -= len(f.Diff)
		d.Changes = append(d.Changes, f)
	}
	return d, nil
}

// comparison reads both sides of a copy.
type comparison struct {
	copy, agent *os.File        // nil if the directory is not there
	stale       map[string]bool // seeds whose source has changed since
}

func newComparison(l workspace.Layout, list workspace.ChangeList) *comparison {
	c := &comparison{stale: map[string]bool{}}
	c.copy, _ = hostpath.OpenDir(l.SandboxDir)
	c.agent, _ = hostpath.OpenDir(l.AgentDir)
	for _, change := range list.Changes {
		if change.Kind == workspace.Stale {
			c.stale[change.Path] = true
		}
	}
	return c
}

func (c *comparison) close() {
	for _, dir := range []*os.File{c.copy, c.agent} {
		if dir != nil {
			_ = dir.Close()
		}
	}
}

// compare shows what happened to one file.
func (c *comparison) compare(change workspace.Change, limit int) FileDiff {
	f := FileDiff{Change: change}
	if change.Kind == workspace.Stale {
		f.Note = "the original changed after the copy was made"
		return f
	}
	if limit <= 0 {
		f.Note = "too many changes to show them all"
		return f
	}
	before, oldName, err := c.side(c.agent, change, workspace.Added)
	if err == nil {
		var after []byte
		var newName string
		if after, newName, err = c.side(c.copy, change, workspace.Deleted); err == nil {
			f.Diff = diff.Unified(oldName, newName, before, after, limit)
		}
	}
	switch {
	case err != nil:
		f.Note = noDiff(err)
	case c.stale[change.Path]:
		f.Note = "compared with the original as it is now, which changed after the copy was made"
	}
	return f
}

// side reads one side of a change; a file that the change says is not there is
// empty and has no name.
func (c *comparison) side(dir *os.File, change workspace.Change, absent workspace.ChangeKind) ([]byte, string, error) {
	if change.Kind == absent {
		return nil, diff.DevNull, nil
	}
	if dir == nil {
		return nil, "", fs.ErrNotExist
	}
	data, err := hostpath.ReadRegularBeneath(dir, change.Path, maxDiffFile)
	return data, change.Path, err
}

// noDiff says why a file is not shown.
func noDiff(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "what it was before is no longer there"
	}
	return err.Error()
}
