package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
)

const (
	// SharedSlug names the one copy of scope "shared". No other slug equals it,
	// for all others end in a hash.
	SharedSlug = "shared"
	// MaxSlugBytes leaves room in a file name for what is appended to a slug.
	MaxSlugBytes = 150
)

// Params say which directories a sandbox has.
type Params struct {
	Access   config.Access
	AgentDir string // the agent workspace, absolute
	// AgentDirIsDefault: AgentDir is not configured, so it is made when missing.
	AgentDirIsDefault bool
	Root              string // workspaceRoot, absolute: the copies of all sandboxes
	Slug              string // of the scope key, or SharedSlug
	ScopeKey          string // recorded with the copy, so that a copy without a sandbox can be told from others
	Temporary         bool   // the copy ends with its sandbox, also if the process that made it was killed
}

// Layout is where the directories of one sandbox are. Nothing in it was checked
// on the disk; Prepare does that.
type Layout struct {
	Params
	// SandboxDir is the sandbox's private copy. Under overlay and rw it is not used.
	SandboxDir string
	// WorkspaceDir is what is mounted at /workspace.
	WorkspaceDir string
}

// NewLayout settles the directories of a sandbox, or reports everything that is
// wrong with p. It does not touch the disk.
func NewLayout(p Params) (Layout, error) {
	err := errors.Join(
		checkAccess(p.Access),
		checkSlug(p.Slug),
		checkDirectory("sandbox.workspaceRoot", p.Root),
		checkDirectory("workspace", p.AgentDir),
	)
	if err != nil {
		return Layout{}, err
	}
	p.Root, p.AgentDir = filepath.Clean(p.Root), filepath.Clean(p.AgentDir)
	if err := checkOverlap(p.Access, p.AgentDir, p.Root); err != nil {
		return Layout{}, err
	}
	l := Layout{Params: p, SandboxDir: filepath.Join(p.Root, p.Slug)}
	l.WorkspaceDir = l.SandboxDir
	if !l.HasCopy() {
		l.WorkspaceDir = l.AgentDir
	}
	return l, nil
}

// HasCopy tells whether the sandbox works in a private copy of the behaviour files.
func (l Layout) HasCopy() bool { return l.Access == config.AccessNone || l.Access == config.AccessRO }

// User is who a sandbox runs as when docker.user is unset: the owner of the
// directory at its /workspace. A copy that does not exist yet will belong to
// the owner of the agent workspace, or else to the caller.
func (l Layout) User() (hostpath.Owner, error) {
	for _, path := range []string{l.WorkspaceDir, l.AgentDir} {
		facts, err := hostpath.Identify(path)
		if err != nil {
			return hostpath.Owner{}, fmt.Errorf("owner of the workspace: %w", err)
		}
		if facts.Exists {
			return hostpath.Owner{UID: int(facts.UID), GID: int(facts.GID)}, nil
		}
	}
	return hostpath.Owner{UID: os.Geteuid(), GID: os.Getegid()}, nil
}

func checkAccess(a config.Access) error {
	switch a {
	case config.AccessNone, config.AccessRO, config.AccessOverlay, config.AccessRW:
		return nil
	}
	return errhint.With(fmt.Errorf("sandbox.workspaceAccess: unknown value %q", a), `Use "none", "ro", "overlay" or "rw".`)
}

// checkSlug allows what slugs are made of. A leading dot is fine as long as the
// name is none that we use ourselves.
func checkSlug(slug string) error {
	bad := slug == "" || slug == "." || slug == ".." || slug == privateName ||
		len(slug) > MaxSlugBytes || strings.ContainsFunc(slug, notInSlug)
	if bad {
		return fmt.Errorf("slug %q: not a name for a sandbox directory", slug)
	}
	return nil
}

func notInSlug(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789._-", r)
}

func checkDirectory(key, path string) error {
	switch {
	case !filepath.IsAbs(path) || strings.ContainsRune(path, 0):
		return errhint.With(fmt.Errorf("%s: %q is not an absolute path", key, path), "Write the path from /.")
	case filepath.Clean(path) == "/":
		return errhint.With(fmt.Errorf("%s: the root of the file system cannot be used", key), "Choose a directory of its own.")
	}
	return nil
}

// checkOverlap refuses directories that lie in each other so that one sandbox
// would see the copies of others, or our records of them.
func checkOverlap(access config.Access, agentDir, root string) error {
	const hint = "Set workspace or sandbox.workspaceRoot to a directory outside the other."
	switch {
	case within(root, agentDir):
		return errhint.With(fmt.Errorf("agent workspace %s: lies in %s, where the sandboxes' copies are", agentDir, root), hint)
	case access != config.AccessNone && within(agentDir, root):
		return errhint.With(fmt.Errorf("agent workspace %s: contains %s, so one sandbox would see the copies of all", agentDir, root), hint)
	}
	return nil
}

// within tells whether path is dir or lies below it, by name alone.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
