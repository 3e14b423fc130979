package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/hostpath/projectquota"
)

// Options of Prepare and Reseed.
type Options struct {
	// User is docker.user where that is a pair of numbers; nil where it is unset
	// or a name of the image's. See Layout.User for what nil means here.
	User *hostpath.Owner
	// Quota is what a new copy may hold, where its file system can enforce it.
	Quota projectquota.Limits
}

// Report tells what Prepare or Reseed did. The names are those of seed files.
type Report struct {
	AgentDirCreated bool     `json:"agentDirCreated,omitempty"`
	CopyCreated     bool     `json:"copyCreated,omitempty"`
	Seeded          []string `json:"seeded,omitempty"`  // copied now
	Kept            []string `json:"kept,omitempty"`    // were there, stay as they are
	Deleted         []string `json:"deleted,omitempty"` // seeded once, removed by the agent
	Moved           []string `json:"moved,omitempty"`   // changed by the agent, now in Aside
	Removed         []string `json:"removed,omitempty"` // unchanged, and gone from the source
	Aside           string   `json:"aside,omitempty"`   // where Moved files are
	Discarded       bool     `json:"discarded,omitempty"`
	Warnings        Warnings `json:"warnings,omitempty"`
}

// Prepare makes the directories of a sandbox ready to be mounted: it creates
// what is missing, refuses what is not a plain directory, and seeds the copy.
// Done again, it changes nothing. It may be called by several processes at once.
func Prepare(ctx context.Context, l Layout, opts Options) (Report, error) {
	var report Report
	if err := checkRealOverlap(l); err != nil {
		return report, err
	}
	if !l.HasCopy() {
		return report, prepareShared(l, opts, &report)
	}
	w, err := makeView(ctx, l, opts, &report)
	if err != nil {
		return report, err
	}
	defer w.close()
	return report, w.seedMissing(&report)
}

// prepareShared prepares an agent workspace that the sandbox works in itself, or
// sees with its changes kept apart.
func prepareShared(l Layout, opts Options, report *Report) error {
	user, err := wantedUser(l, opts)
	if err != nil {
		return err
	}
	agent, err := makeAgentDir(l, user, report)
	if err != nil {
		return err
	}
	defer closeAll(agent)
	if l.Access == config.AccessOverlay {
		return nil // nothing is written to it
	}
	return checkWritable(l, agent, user)
}

func wantedUser(l Layout, opts Options) (hostpath.Owner, error) {
	if opts.User != nil {
		return *opts.User, nil
	}
	return l.User()
}

// makeAgentDir opens the agent workspace, making the default one. Without one a
// sandbox with access none still works, and nil is returned; others do not.
func makeAgentDir(l Layout, user hostpath.Owner, report *Report) (*os.File, error) {
	dir, err := openAgentDir(l)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	switch {
	case l.AgentDirIsDefault:
		report.AgentDirCreated = true
		return makeDefaultAgentDir(l, user)
	case l.Access == config.AccessNone:
		report.Warnings.add(Warning{
			Subject: "agent workspace " + printable(l.AgentDir),
			Message: "does not exist, so nothing is seeded",
			Hint:    "Create the directory, or correct the agent's workspace in the config file.",
		})
		return nil, nil
	}
	return nil, err
}

// checkRealOverlap repeats the check of NewLayout for where links lead to.
func checkRealOverlap(l Layout) error {
	agent, err := hostpath.Identify(l.AgentDir)
	if err != nil {
		return agentError(l, err)
	}
	root, err := hostpath.Identify(l.Root)
	if err != nil {
		return rootError(l, err)
	}
	return checkOverlap(l.Access, agent.Canonical, root.Canonical)
}

// openAgentDir opens the agent workspace. Links may lead to it, but it must not
// be one itself: whoever can change a link could change what is mounted.
func openAgentDir(l Layout) (*os.File, error) {
	parent, err := hostpath.OpenDir(filepath.Dir(l.AgentDir))
	if err != nil {
		return nil, agentError(l, err)
	}
	defer closeAll(parent)
	dir, err := openDirAt(parent, filepath.Base(l.AgentDir))
	return dir, agentError(l, err)
}

func makeDefaultAgentDir(l Layout, user hostpath.Owner) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(l.AgentDir), privateDirMode); err != nil {
		return nil, agentError(l, err)
	}
	parent, err := hostpath.OpenDir(filepath.Dir(l.AgentDir))
	if err != nil {
		return nil, agentError(l, err)
	}
	defer closeAll(parent)
	dir, _, err := makeDir(parent, filepath.Base(l.AgentDir), newDir{mode: privateDirMode, owner: grantable(user)})
	return dir, agentError(l, err)
}

// grantable returns the owner for new files, if we may give files away.
func grantable(user hostpath.Owner) *hostpath.Owner {
	if os.Geteuid() != 0 {
		return nil
	}
	return &user
}

func agentError(l Layout, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("agent workspace %s: %w", l.AgentDir, reason(err))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errhint.With(err, "Create the directory with `mkdir -p '"+strings.ReplaceAll(printable(l.AgentDir), "'", `'\''`)+"'`, or correct the agent's workspace in the config file.")
	case errors.Is(err, hostpath.ErrSymlink):
		return errhint.With(err, "Set workspace to the directory that the link leads to.")
	case errors.Is(err, hostpath.ErrNotDirectory), errors.Is(err, unix.ENOTDIR):
		return errhint.With(err, "Set workspace to a directory.")
	}
	return withHint(err, l.AgentDir)
}

// checkWritable refuses an agent workspace in which the sandbox could not work.
func checkWritable(l Layout, agent *os.File, user hostpath.Owner) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(agent.Fd()), &st); err != nil {
		return agentError(l, err)
	}
	if st.Flags&unix.ST_RDONLY != 0 {
		return agentError(l, unix.EROFS)
	}
	facts, err := hostpath.IdentifyBeneath(agent, ".")
	if err != nil {
		return agentError(l, err)
	}
	if facts.WritableBy(uint32(user.UID), uint32(user.GID)) || hasACL(agent) {
		return nil
	}
	return errhint.With(
		fmt.Errorf("agent workspace %s: not writable by uid %d, which the sandbox runs as", l.AgentDir, user.UID),
		"Change its owner or mode, set docker.user to its owner "+strconv.Quote(facts.Owner())+", or use workspaceAccess \"ro\" or \"none\".")
}

// hasACL tells whether more than the permission bits decides about access.
func hasACL(dir *os.File) bool {
	_, err := unix.Fgetxattr(int(dir.Fd()), "system.posix_acl_access", nil)
	return err == nil
}
