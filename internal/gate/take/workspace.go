// Package take brings the commits that an agent made in a workspace over a
// person's repository into that repository: through a quarantine, judged by the
// content policy, as a pack and refs that are written as files. Git never runs on
// what a sandbox can write, no hook runs, and no work tree changes.
//
//	sandbox ──bundle──▶ quarantine ──content──▶ (sign) ──▶ refs/atoll/… ──▶ branch
package take

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/content"
	"github.com/atoll-run/atoll/internal/relay/quarantine"
)

// Workspace is a workspace in a sandbox whose base is a person's repository.
type Workspace struct {
	Sandbox  relay.Sandbox
	Dir      string             // the top level of the repository, inside
	Run      string             // whose overlay it is; "" for others than runs
	Checkout *checkout.Checkout // the base
	State    string             // a directory of the host for quarantines
	Slug     string             // the name of the refs below refs/atoll/
	Policy   content.Policy     // see LocalPolicy
	MaxBytes int64              // of a bundle; 0 is quarantine.MaxBytes
	// Environ has the variables with which the person's keys are found for signing;
	// nil is this process's.
	Environ []string
}

// The errors of a workspace whose commits cannot be looked at.
var (
	ErrNoGit        = errors.New("the sandbox has no git")
	ErrNoRepository = errors.New("there is no repository in the workspace")
)

// LocalPolicy is a policy for commits that a person takes into a repository of
// this host: what other programs would execute needs approval, and secrets and
// what no repository should hold stay blocked.
func LocalPolicy(p content.Policy) content.Policy {
	if p.Protected == nil {
		p.Protected = contentpolicy.Protections()
	}
	local := make([]contentpolicy.Protection, 0, len(p.Protected))
	for _, protection := range p.Protected {
		if protection.Verdict == contentpolicy.Blocked {
			protection.Verdict = contentpolicy.Approval
		}
		local = append(local, protection)
	}
	p.Protected, p.Modules = local, contentpolicy.Approval
	return p
}

func (w *Workspace) maxBytes() int64 { return cmp.Or(max(w.MaxBytes, 0), quarantine.MaxBytes) }

// lock excludes other processes that take commits of the same workspace.
func (w *Workspace) lock(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(w.State, 0o700); err != nil {
		return nil, err
	}
	locks, err := filelock.Open(filepath.Join(w.State, "lock"))
	if err != nil {
		return nil, err
	}
	held, err := locks.Hold(ctx, "take")
	if err != nil {
		return nil, err
	}
	return held.Release, nil
}
