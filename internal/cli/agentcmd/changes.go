package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// changes are what waits at the gate after a use.
type changes struct {
	api.SyncCounts `json:",inline"`
	Hidden         int              `json:"hidden"`
	Commits        int              `json:"commits"`           // that the repository has not
	Applied        *api.SyncApplied `json:"applied,omitempty"` // by --accept
}

// collect finds out what changed in the directory's overlay, and with --accept applies
// what passes. After a single command of a shell nothing is collected.
func (s *start) collect(ctx context.Context) error {
	if s.box.Plan.Agent.Sandbox.WorkspaceAccess != config.AccessOverlay || s.preset.Commands && len(s.added) > 0 && !s.accept {
		return nil
	}
	done := s.Progress("collecting what changed")
	defer done()
	sync, err := backend.OpenSync(ctx, s.Env)
	if err != nil {
		return err
	}
	subject := api.SyncSubject{Directory: s.dir.Path}
	all, err := sync.Trees(ctx, &subject)
	if errors.Is(err, overlay.ErrNone) || err == nil && len(all.Trees) == 0 {
		return nil
	} else if err != nil {
		return err
	}
	tree := &all.Trees[0]
	s.report.Changes = &changes{SyncCounts: tree.Counts, Hidden: tree.Hidden}
	return errors.Join(s.countCommits(ctx, sync, &subject), s.applyPassing(ctx, sync, &subject, tree))
}

// countCommits counts the commits that were made inside and the repository has not.
func (s *start) countCommits(ctx context.Context, sync backend.Sync, subject *api.SyncSubject) error {
	if !s.dir.IsRepository() {
		return nil
	}
	commits, err := sync.Commits(ctx, subject)
	if err == nil {
		s.report.Changes.Commits = len(commits.Commits)
	}
	return err
}

// applyPassing applies what passes to the directory, with --accept.
func (s *start) applyPassing(ctx context.Context, sync backend.Sync, subject *api.SyncSubject, tree *api.SyncTree) (err error) {
	var choices []api.SyncChoice
	for i := range tree.Entries {
		if e := &tree.Entries[i]; e.Verdict == api.SyncPass {
			choices = append(choices, api.SyncChoice{Path: e.Path, SHA256: e.SHA256})
		}
	}
	if len(choices) == 0 || !s.accept {
		return nil
	}
	c := s.report.Changes
	if c.Applied, err = sync.Approve(ctx, &api.SyncApproval{Subject: *subject, Choices: choices}); err == nil {
		c.Pass -= len(choices)
	}
	return err
}

// sayChanges says what waits at the gate, and the command that shows it.
func (s *start) sayChanges() {
	c := s.report.Changes
	if c == nil {
		return
	}
	if c.Applied != nil {
		fmt.Fprintf(s.Err, "applied  %d to %s (undo: atoll sync undo %s)\n", len(c.Applied.Files), s.dir.Path, c.Applied.ID)
	}
	if c.Commits > 0 && s.branch == "" {
		fmt.Fprintf(s.Err, "commits  %d; take them: atoll sync take\n", c.Commits)
	}
	switch waiting := c.waiting(); {
	case waiting != "":
		fmt.Fprintf(s.Err, "changes  %s; review them: atoll sync review\n", waiting)
	case c.Applied == nil && c.Commits == 0:
		fmt.Fprintln(s.Err, "changes  none")
	}
}

// waiting says how many changes wait with which verdict; "" if none do.
func (c *changes) waiting() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{c.Pass, "pass"}, {c.Approval, "need approval"}, {c.Blocked, "blocked"}, {c.Conflict, "in conflict"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return strings.Join(parts, ", ")
}
