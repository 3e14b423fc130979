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
	if !s.accept {
		return nil
	}
	return s.applyPassing(ctx, sync, &subject, tree)
}

// applyPassing applies what passes to the directory.
func (s *start) applyPassing(ctx context.Context, sync backend.Sync, subject *api.SyncSubject, tree *api.SyncTree) (err error) {
	var choices []api.SyncChoice
	for i := range tree.Entries {
		if e := &tree.Entries[i]; e.Verdict == api.SyncPass {
			choices = append(choices, api.SyncChoice{Path: e.Path, SHA256: e.SHA256})
		}
	}
	if len(choices) == 0 {
		return nil
	}
	c := s.report.Changes
	if c.Applied, err = sync.Approve(ctx, &api.SyncApproval{Subject: *subject, Choices: choices}); err == nil {
		c.Pass -= len(choices)
	}
	return err
}

// sayChanges says what waits at the gate, and the one command that shows it.
func (s *start) sayChanges() {
	c := s.report.Changes
	if c == nil {
		return
	}
	if c.Applied != nil {
		fmt.Fprintf(s.Err, "applied  %d to %s (undo: atoll sync undo %s)\n", len(c.Applied.Files), s.dir.Path, c.Applied.ID)
	}
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{c.Pass, "pass"}, {c.Approval, "need approval"}, {c.Blocked, "blocked"}, {c.Conflict, "in conflict"}, {c.Withheld, "withheld"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	switch {
	case c.Pass+c.Approval+c.Blocked+c.Conflict > 0:
		fmt.Fprintf(s.Err, "changes  %s; review them: atoll sync review\n", strings.Join(parts, ", "))
	case c.Applied == nil:
		fmt.Fprintln(s.Err, "changes  none")
	}
}
