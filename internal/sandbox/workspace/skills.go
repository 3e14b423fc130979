package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
)

// The limits of what is synced. A skill that would exceed the total or the
// count is left out as a whole; a file that is too large is left out alone.
const (
	MaxSkills          = 256
	MaxSkillFiles      = 4096 // in all skills together
	MaxSkillFileBytes  = 8 << 20
	MaxSkillTotalBytes = 64 << 20
	MaxSkillDepth      = 16
	// SkillSyncTimeout ends a sync that an agent tries to keep busy for ever.
	SkillSyncTimeout = time.Minute
)

const (
	skillsName    = "skills"
	skillFileName = "SKILL.md"
)

// SkillOptions say which skills an agent gets.
type SkillOptions struct {
	// Roots are directories of skills besides the agent workspace's own. Of two
	// skills with one name the first wins, the agent workspace's before all.
	Roots []string
	// Allowed are the names of the skills this agent may use; nil means all.
	Allowed []string
	// Readable tells whether the read tool may show a file, given by its path
	// below /workspace ("skills/<name>/SKILL.md"); nil means every file.
	Readable func(path string) bool
}

// SkillReport tells what a sync did.
type SkillReport struct {
	Skills   []string `json:"skills,omitempty"` // that the copy has now
	Written  int      `json:"written,omitempty"`
	Removed  int      `json:"removed,omitempty"`
	Warnings Warnings `json:"warnings,omitempty"`
}

// SyncSkills makes skills/ in a copy equal to the skills that the agent may
// use, and removes everything else there. A skill is a directory with a
// SKILL.md. Links are refused, hard ones too, wherever they lead.
//
// Skills are a help, not a condition: whatever fails is a warning. Under rw the
// sandbox sees the agent workspace's own skills and nothing happens.
func SyncSkills(ctx context.Context, l Layout, opts SkillOptions) SkillReport {
	var report SkillReport
	if !l.HasCopy() {
		return report
	}
	ctx, cancel := context.WithTimeout(ctx, SkillSyncTimeout)
	defer cancel()
	if err := syncSkills(ctx, l, opts, &report); err != nil {
		report.Warnings.add(Warning{Subject: skillsName, Message: fmt.Sprintf("not synced: %v", err), Hint: errhint.Of(err)})
	}
	return report
}

func syncSkills(ctx context.Context, l Layout, opts SkillOptions, report *SkillReport) error {
	v, err := openLockedRoot(ctx, l)
	if err != nil {
		return err
	}
	defer v.close()
	dir, err := v.openCopy()
	if err != nil {
		return err
	}
	defer closeAll(dir)
	c := skillCollector{SkillOptions: opts, warnings: &report.Warnings, found: newSkillTree()}
	defer c.close()
	c.collectFrom(l)
	owner, err := ownerOf(dir)
	if err != nil {
		return err
	}
	old := v.loadSkills()
	m := mirror{ctx: ctx, owner: owner, old: old, report: report,
		next: skillRecord{Version: skillRecordVersion, Files: map[string]skillEntry{}}}
	failed := m.top(dir, c.found)
	if failed == nil {
		report.Skills = slices.Sorted(maps.Keys(c.found.dirs))
	}
	if !maps.Equal(old.Files, m.next.Files) {
		failed = errors.Join(failed, v.saveSkills(m.next))
	}
	return failed
}

// collectFrom opens the roots and collects their skills, in order.
func (c *skillCollector) collectFrom(l Layout) {
	c.collectOwn(l)
	for _, path := range c.Roots {
		root, err := hostpath.OpenDir(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			c.warnings.addf(path, "its skills are not synced: %v", reason(err))
		default:
			c.collect(root)
		}
	}
}

// collectOwn collects the skills of the agent workspace.
func (c *skillCollector) collectOwn(l Layout) {
	agent, err := openAgentDir(l)
	if err == nil {
		defer closeAll(agent)
		own, err := openDirAt(agent, skillsName)
		if err == nil {
			c.collect(own)
		} else if ignoreMissing(err) != nil {
			c.warnings.addf(skillsName, "not synced: in the agent workspace it %v", reason(err))
		}
	} else if ignoreMissing(err) != nil {
		c.warnings.addf(skillsName, "not synced: %v", err)
	}
}
