package relay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/content"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/github"
	"github.com/atoll-run/atoll/internal/relay/quarantine"
	"github.com/atoll-run/atoll/internal/relay/rewrite"
)

// Project is a repository that agents work on, as the host's configuration
// describes it. Nothing of it is ever taken from a sandbox.
type Project struct {
	Remote   git.Remote // without a credential
	Base     string     // the branch that pull requests are for, for example main
	History  int        // commits of it that a sandbox gets; 0 is all
	Identity rewrite.Identity
	Policy   content.Policy
	MaxBytes int64 // of what one run brings, packed; 0 is quarantine.MaxBytes
	// Credential opens the remote; nil if it asks for none.
	Credential github.Credential
	// Checkout is the repository itself, of a person who works in it; nil if it is
	// a remote.
	Checkout *checkout.Checkout
	// Pulls is where pull requests are opened; nil if none are.
	Pulls *Pulls
}

// Pulls says how pull requests are opened.
type Pulls struct {
	Client      *github.Client
	Owner, Repo string
	Draft       bool
	Labels      []string
}

// Relay keeps mirrors, quarantines and records below one directory of the host.
type Relay struct {
	dir string
	// Known are secrets that must not be in any commit.
	Known [][]byte
	// OnStep, if set, is called after every saved step.
	OnStep func(*Record)
}

// New returns the relay of a directory.
func New(dir string) *Relay { return &Relay{dir: dir} }

func (p *Project) maxBytes() int64 {
	if p.MaxBytes > 0 {
		return p.MaxBytes
	}
	return quarantine.MaxBytes
}

func (p *Project) baseRef() string {
	if p.Checkout != nil && p.Base == "" {
		return "HEAD"
	}
	return "refs/heads/" + p.Base
}

// location is the address of the repository, which identifies the project.
func (p *Project) location() string {
	if p.Checkout != nil {
		return "checkout " + p.Checkout.Common
	}
	return p.Remote.URL
}

// id names a project's directory.
func (p *Project) id() string {
	sum := sha256.Sum256([]byte(p.location()))
	return hex.EncodeToString(sum[:8])
}

// authenticate returns the remote with a credential for one operation; done
// revokes it.
func (p *Project) authenticate(ctx context.Context) (remote git.Remote, done func(), err error) {
	remote, done = p.Remote, func() {}
	if p.Credential == nil {
		return remote, done, nil
	}
	owner, repo := "", ""
	if p.Pulls != nil {
		owner, repo = p.Pulls.Owner, p.Pulls.Repo
	}
	auth, end, err := p.Credential.Token(ctx, owner, repo)
	if err != nil {
		return remote, done, err
	}
	remote.User, remote.Secret = "x-access-token", auth
	return remote, func() { _ = end(context.WithoutCancel(ctx)) }, nil // it expires by itself
}

// mirrorLimits are wider than those of what agents bring: it is our own data.
func mirrorLimits() confined.Limits { return confined.Limits{Memory: 8 << 30, File: 32 << 30} }

// mirror is the host's own copy of the remote's objects.
func (r *Relay) mirror(ctx context.Context, p *Project) (*git.Repo, error) {
	dir := filepath.Join(r.dir, p.id(), "mirror.git")
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil {
		return git.Open(dir, mirrorLimits())
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "mirror.new-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // what is left is taken away at the next start
	if _, err := git.Init(ctx, filepath.Join(fresh, "git"), mirrorLimits()); err != nil {
		return nil, err
	}
	if err := os.Rename(filepath.Join(fresh, "git"), dir); err != nil && !errors.Is(err, os.ErrExist) && !exists(dir) {
		return nil, err
	}
	return git.Open(dir, mirrorLimits())
}

// exists reports whether another process made the mirror meanwhile.
func exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "HEAD"))
	return err == nil
}

// Heads is where the base and a branch are.
type Heads struct {
	Base   string
	Branch string // "" if it is not there yet
}

// Tip is what a run starts from.
func (h Heads) Tip() string {
	if h.Branch != "" {
		return h.Branch
	}
	return h.Base
}

// refresh fetches the base and the branch into the mirror.
func (r *Relay) refresh(ctx context.Context, p *Project, key branch.Key) (*git.Repo, Heads, error) {
	mirror, err := r.mirror(ctx, p)
	if err != nil {
		return nil, Heads{}, err
	}
	unlock, err := lock(ctx, filepath.Join(r.dir, p.id(), "lock"))
	if err != nil {
		return nil, Heads{}, err
	}
	defer unlock()
	if p.Checkout != nil {
		heads, err := r.refreshCheckout(ctx, p, mirror, key)
		return mirror, heads, err
	}
	remote, done, err := p.authenticate(ctx)
	if err != nil {
		return nil, Heads{}, err
	}
	defer done()
	found, err := mirror.Heads(ctx, &remote, p.baseRef(), "refs/heads/"+branch.Prefix+"*")
	if err != nil {
		return nil, Heads{}, err
	}
	if err := checkCollisions(key, found); err != nil {
		return nil, Heads{}, err
	}
	heads := Heads{Base: found[p.baseRef()], Branch: found[key.Ref()]}
	if heads.Base == "" {
		return nil, Heads{}, fmt.Errorf("the remote repository has no branch %q", p.Base)
	}
	refs := []string{p.baseRef()}
	if heads.Branch != "" {
		refs = append(refs, key.Ref())
	}
	return mirror, heads, mirror.Fetch(ctx, &remote, refs...)
}

func checkCollisions(key branch.Key, found map[string]string) error {
	for ref := range found {
		other, ok := strings.CutPrefix(ref, "refs/heads/"+branch.Prefix)
		if ok && key.Collides(branch.Key(other)) {
			return fmt.Errorf("the branch %s cannot be beside %s%s, which exists", key.Branch(), branch.Prefix, other)
		}
	}
	return nil
}
