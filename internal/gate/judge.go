package gate

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// judge applies the rules to all entries and gives each its verdict.
func (c *collection) judge(ctx context.Context) error {
	hooks := contentpolicy.NewProtected(c.base.hookProtections())
	changed := map[string]bool{}
	for i := range c.entries {
		changed[c.entries[i].Path] = true
		c.gone[c.entries[i].Path] = c.entries[i].Kind == overlay.Deleted
	}
	for i := range c.entries {
		e := &c.entries[i]
		e.Reasons = append(e.Reasons, c.pathFindings(e)...)
		e.Reasons = append(e.Reasons, hooks.Path(e.Path)...)
		c.judgeKind(e)
		judgeLockfile(e, changed)
		if err := c.judgeContent(e); err != nil {
			return err
		}
	}
	c.judgeTwins()
	if err := c.judgeSecrets(ctx); err != nil {
		return err
	}
	for i := range c.entries {
		if err := c.decideVerdict(&c.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *collection) pathFindings(e *Entry) []contentpolicy.Finding {
	found := c.protected.Path(e.Path)
	switch {
	case strings.HasPrefix(path.Base(e.Path), TempPrefix):
		e.add("path-reserved", contentpolicy.Blocked, "the name is one of the gate's own")
	case e.Kind != overlay.Deleted:
		found = append(found, contentpolicy.Path(e.Path)...)
	case !utf8.ValidString(e.Path):
		e.add("path-encoding", contentpolicy.Blocked, "the path is not UTF-8")
	}
	return found
}

// judgeKind judges modes and links.
func (c *collection) judgeKind(e *Entry) {
	isFile := e.Kind != overlay.Deleted && e.Mode.Type() == 0
	if isFile && e.Mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
		e.add("mode-bits", contentpolicy.Approval, "it has a setuid, setgid or sticky bit, which is not taken over")
	}
	if isFile && executable(e.Mode) && (!executable(e.OldMode) || !e.OldMode.IsRegular()) {
		e.add("executable", contentpolicy.Approval, "it becomes executable")
	}
	if e.Kind != overlay.Deleted && e.Mode.Type() == fs.ModeSymlink {
		if why := contentpolicy.LinkProblem(e.Path, e.Link); why != "" {
			e.add("symlink", contentpolicy.Blocked, why)
		}
	}
	if e.Kind == overlay.Replaced {
		e.add("replaced", contentpolicy.Approval, "it becomes another type of file")
	}
}

// decideVerdict finds conflicts and sums up.
func (c *collection) decideVerdict(e *Entry) error {
	why, err := c.conflict(c.base, e)
	if err != nil {
		return err
	}
	e.Verdict = Pass
	for _, f := range e.Reasons {
		if f.Rule == ruleHidden {
			why = f.Detail
		}
		if f.Verdict == contentpolicy.Blocked {
			e.Verdict = Blocked
		} else if e.Verdict == Pass {
			e.Verdict = Approval
		}
	}
	if by := c.decided.override(e); by != nil && e.Verdict != Pass {
		e.Verdict, e.Overridden = Pass, by.Reason
	}
	if why != "" {
		e.add(ruleConflict, contentpolicy.Blocked, why)
		e.Verdict = Conflict
	}
	return nil
}

// conflict says why an entry cannot be applied to what the base has, or "".
func (g *Gate) conflict(base *baseDir, e *Entry) (string, error) {
	if e.Kind == overlay.Special {
		return "", nil
	}
	st, err := base.stat(e.Path)
	isDir := st != nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case err != nil:
		return "a directory above it is not what it was: " + err.Error(), nil
	case st == nil && !e.isNew():
		return "the host has removed it", nil
	case st != nil && e.Kind == overlay.Added && (!isDir || !e.Mode.IsDir()):
		return "the host has made a file of this name", nil
	case isDir && (e.Kind == overlay.Deleted && e.OldMode.IsDir() || e.Mode.IsDir()):
		return "", nil // files in it are entries of their own
	}
	begun, err := g.opt.Source.AsBegun(e.Path)
	if err != nil {
		return "", err
	}
	if !begun {
		return "the host has changed it since the agent began", nil
	}
	return "", nil
}

// stat returns what the base has at a path; nil if nothing.
func (b *baseDir) stat(rel string) (*unix.Stat_t, error) {
	dir, leaf, err := b.parent(rel)
	if isGone(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer dir.Close()
	var st unix.Stat_t
	err = unix.Fstatat(int(dir.Fd()), leaf, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	return &st, err
}

// isNew reports whether the base had nothing at the path.
func (e *Entry) isNew() bool {
	return e.Kind == overlay.Added || e.Kind == overlay.Renamed || e.Kind == overlay.Link && e.OldMode == 0
}
