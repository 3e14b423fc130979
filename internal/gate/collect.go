package gate

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// The names of groups that are withheld.
const (
	withheldGit      = ".git"
	withheldMode     = "modes that do not matter"
	withheldRejected = "rejected"
	withheldCommits  = "in commits"
	withheldLimit    = "beyond the limit"
)

// Collect reads what changed, stages and judges it, and remembers it as what was
// shown.
func (g *Gate) Collect(ctx context.Context) (*Set, error) {
	base, err := g.openBase()
	if err != nil {
		return nil, err
	}
	defer base.close()
	c := &collection{Gate: g, base: base, ignored: newIgnored(base.root), withheld: map[string]int{}, parents: map[string]bool{}, gone: map[string]bool{}, modules: map[string]*moduleSigns{}}
	for change, err := range g.opt.Source.Changes(ctx) {
		if err != nil {
			return nil, err
		}
		if err := c.add(&change); err != nil {
			return nil, err
		}
	}
	if err := c.judge(ctx); err != nil {
		return nil, err
	}
	return c.set()
}

// collection is the state of one Collect call.
type collection struct {
	*Gate
	base     *baseDir
	ignored  *ignored
	withheld map[string]int
	parents  map[string]bool // directories with changes in them
	gone     map[string]bool // deleted paths
	modules  map[string]*moduleSigns
	entries  []Entry
	deleted  int // of entries
	bytes    int64
}

// add takes a change in, or counts it as withheld.
func (c *collection) add(change *overlay.Change) error {
	for dir := path.Dir(change.Path); dir != "." && !c.parents[dir]; dir = path.Dir(dir) {
		c.parents[dir] = true
	}
	group := c.group(change)
	if group == "" && c.inCommits(change) {
		group = withheldCommits
	}
	if group == "" && c.full(change) {
		group = withheldLimit
	}
	if group == withheldGit {
		c.noteModule(change)
	}
	if group != "" {
		c.withheld[group]++
		return nil
	}
	e, err := c.stage(change)
	if err != nil {
		return err
	}
	if change.Kind == overlay.Deleted {
		c.deleted++
	}
	c.entries = append(c.entries, *e)
	return nil
}

// group returns the group that a change is withheld in, or "".
func (c *collection) group(change *overlay.Change) string {
	for element := range strings.SplitSeq(change.Path, "/") {
		switch element {
		case ".git":
			return withheldGit
		case ".cogni", ".openclaw", ".openclaw-state":
			return element
		}
	}
	if change.Kind == overlay.Mode && (change.Mode.IsDir() || executable(change.Mode) == executable(change.OldMode)) {
		return withheldMode
	}
	for _, pattern := range c.ignore {
		if len(change.Path) <= c.limits.PathBytes && pattern.Match(change.Path) {
			return strings.Join(pattern, "/")
		}
	}
	return c.ignored.rule(change.Path, change.Mode.IsDir() || change.OldMode.IsDir())
}

// full reports whether as many are listed as may be. Deletions are counted by
// themselves, so that no number of other changes hides them.
func (c *collection) full(change *overlay.Change) bool {
	if change.Kind == overlay.Deleted {
		return c.deleted >= c.limits.Files
	}
	return len(c.entries)-c.deleted >= c.limits.Files
}

func executable(mode fs.FileMode) bool { return mode&0o111 != 0 }

// set puts the entries in order, deletions first, and stores them.
func (c *collection) set() (*Set, error) {
	s := &Set{Time: time.Now().UTC(), Entries: []Entry{}, Modules: c.committedModules()}
	for i := range c.entries {
		if e := &c.entries[i]; c.decided.isRejected(e) {
			c.withheld[withheldRejected]++
		} else if !c.isParent(e) {
			s.Entries = append(s.Entries, *e)
		}
	}
	slices.SortStableFunc(s.Entries, func(a, b Entry) int {
		if gone := a.Kind == overlay.Deleted; gone != (b.Kind == overlay.Deleted) {
			if gone {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	for name, files := range c.withheld {
		s.Withheld = append(s.Withheld, Group{name, files})
	}
	slices.SortFunc(s.Withheld, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	if err := s.seal(); err != nil {
		return nil, err
	}
	if err := c.writeJSON(setName, s); err != nil {
		return nil, err
	}
	c.testHook("set")
	return s, c.sweepStage(s)
}

// isParent reports whether an entry is a new directory that is made with what is in
// it.
func (c *collection) isParent(e *Entry) bool {
	return e.Mode.IsDir() && (e.Kind == overlay.Added || e.Kind == overlay.Renamed) && c.parents[e.Path]
}

// add adds a finding about an entry.
func (e *Entry) add(rule string, verdict contentpolicy.Verdict, detail string) {
	e.Reasons = append(e.Reasons, contentpolicy.Finding{Rule: rule, Verdict: verdict, Path: e.Path, Detail: detail})
}
