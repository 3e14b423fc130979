package run

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/api"
)

// Changes are what waits at the gate of a run on a directory when the run has ended.
type Changes struct {
	Directory string `json:"directory"`
	Pass      int    `json:"pass"`
	Approval  int    `json:"approval"`
	Blocked   int    `json:"blocked"`
	Conflict  int    `json:"conflict"`
	Withheld  int    `json:"withheld"` // files that are never taken over
	Hidden    int    `json:"hidden"`   // files of the directory that were not visible inside
	Commits   int    `json:"commits"`  // that the repository has not
}

// Add adds what waits in one overlay.
func (c *Changes) Add(t *api.SyncTree) {
	c.Pass, c.Approval, c.Blocked = c.Pass+t.Counts.Pass, c.Approval+t.Counts.Approval, c.Blocked+t.Counts.Blocked
	c.Conflict, c.Withheld, c.Hidden = c.Conflict+t.Counts.Conflict, c.Withheld+t.Counts.Withheld, c.Hidden+t.Hidden
	if t.Commits != nil {
		c.Commits += len(t.Commits.Commits)
	}
}

// Waiting reports whether there is something to decide about.
func (c *Changes) Waiting() bool { return c.Pass+c.Approval+c.Blocked+c.Conflict+c.Commits > 0 }

// String says how many changes wait with which verdict; "none" if there are none.
func (c *Changes) String() string {
	commits := "commits"
	if c.Commits == 1 {
		commits = "commit"
	}
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{c.Commits, commits}, {c.Pass, "pass"}, {c.Approval, "need approval"}, {c.Blocked, "blocked"}, {c.Conflict, "in conflict"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
