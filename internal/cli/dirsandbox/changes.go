package dirsandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox/directory"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// Changes are what waits at the gate after a use of a directory's sandbox.
type Changes struct {
	api.SyncCounts `json:",inline"`
	Hidden         int              `json:"hidden"`
	Commits        int              `json:"commits"`           // that the repository has not
	Applied        *api.SyncApplied `json:"applied,omitempty"` // by Accept

	sync      backend.Sync
	directory *directory.Directory
	passing   []api.SyncChoice
	run       string // whose overlay it is; "" is the directory's
}

// RunChanges returns what a receipt says of a run on a directory.
func RunChanges(id string, c *run.Changes) *Changes {
	return &Changes{
		SyncCounts: api.SyncCounts{Pass: c.Pass, Approval: c.Approval, Blocked: c.Blocked, Conflict: c.Conflict, Withheld: c.Withheld},
		Hidden:     c.Hidden, Commits: c.Commits, run: id,
	}
}

// CollectChanges finds out what changed in a directory's overlay; nil if it has none.
func CollectChanges(ctx context.Context, e *console.Env, d *directory.Directory) (*Changes, error) {
	done := e.Progress("collecting what changed")
	defer done()
	sync, err := backend.OpenSync(ctx, e)
	if err != nil {
		return nil, err
	}
	all, err := sync.Trees(ctx, &api.SyncSubject{Directory: d.Path})
	if errors.Is(err, overlay.ErrNone) || err == nil && len(all.Trees) == 0 {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	tree := &all.Trees[0]
	c := &Changes{SyncCounts: tree.Counts, Hidden: tree.Hidden, sync: sync, directory: d}
	for i := range tree.Entries {
		if e := &tree.Entries[i]; e.Verdict == api.SyncPass {
			c.passing = append(c.passing, api.SyncChoice{Path: e.Path, SHA256: e.SHA256})
		}
	}
	return c, c.countCommits(ctx)
}

// countCommits counts the commits that were made inside and the repository has not.
func (c *Changes) countCommits(ctx context.Context) error {
	if !c.directory.IsRepository() {
		return nil
	}
	commits, err := c.sync.Commits(ctx, &api.SyncSubject{Directory: c.directory.Path})
	if err == nil {
		c.Commits = len(commits.Commits)
	}
	return err
}

// Accept applies what passes to the directory.
func (c *Changes) Accept(ctx context.Context) (err error) {
	if c == nil || len(c.passing) == 0 {
		return nil
	}
	c.Applied, err = c.sync.Approve(ctx, &api.SyncApproval{Subject: api.SyncSubject{Directory: c.directory.Path}, Choices: c.passing})
	if err == nil {
		c.Pass -= len(c.passing)
	}
	return err
}

// Say says what waits at the gate, and the command that shows it. Commits are left out
// if they go elsewhere.
func (c *Changes) Say(to io.Writer, withCommits bool) {
	if c == nil {
		return
	}
	if c.Applied != nil {
		fmt.Fprintf(to, "applied  %d to %s (undo: atoll sync undo %s)\n", len(c.Applied.Files), console.Printable(c.directory.Path), c.Applied.ID)
	}
	if c.Commits > 0 && withCommits {
		fmt.Fprintf(to, "commits  %d; take them: atoll sync take%s\n", c.Commits, c.ofRun())
	}
	switch waiting := c.waiting(); {
	case waiting != "":
		fmt.Fprintf(to, "changes  %s; review them: atoll sync review%s\n", waiting, c.ofRun())
	case c.Applied == nil && c.Commits == 0:
		fmt.Fprintln(to, "changes  none")
	}
}

// ofRun returns the flag that names the overlay to a verb of sync.
func (c *Changes) ofRun() string {
	if c.run == "" {
		return ""
	}
	return " --run-id " + c.run
}

// waiting says how many changes wait with which verdict; "" if none do.
func (c *Changes) waiting() string {
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
