package relay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// checkNotInUse refuses a branch that is checked out in a work tree.
func checkNotInUse(c *checkout.Checkout, key branch.Key) error {
	top, err := c.UsedIn(key.Ref())
	if err != nil || top == "" {
		return err
	}
	return errhint.With(fmt.Errorf("%s is checked out in %s", key.Branch(), top), "check out another branch, or name another with --branch")
}

// refreshCheckout fetches the base and the branch of the checkout into the mirror.
func (r *Relay) refreshCheckout(ctx context.Context, p *Project, mirror *git.Repo, key branch.Key) (Heads, error) {
	if err := errors.Join(p.Checkout.CheckComplete(), checkNotInUse(p.Checkout, key)); err != nil {
		return Heads{}, err
	}
	remote := &git.Remote{URL: p.Checkout.Top}
	found, err := mirror.Heads(ctx, remote, p.baseRef(), "refs/heads/"+branch.Prefix+"*")
	if err != nil {
		return Heads{}, err
	}
	if err := checkCollisions(key, found); err != nil {
		return Heads{}, err
	}
	heads := Heads{Base: found[p.baseRef()], Branch: found[key.Ref()]}
	if heads.Base == "" {
		return Heads{}, errhint.With(fmt.Errorf("the checkout %s has no commit at %s", p.Checkout.Top, p.baseRef()), "commit something first")
	}
	refs := []string{p.baseRef()}
	if heads.Branch != "" {
		refs = append(refs, key.Ref())
	}
	return heads, mirror.FetchTo(ctx, remote, "refs/checkout/", refs...)
}

// addBranch sets a branch of the checkout to the record's head, if the branch is
// still where it was last seen; "" means that it did not exist. What is added are
// a pack and a ref, as files.
func addBranch(ctx context.Context, c *checkout.Checkout, repo *git.Repo, record *Record) error {
	key := record.Work.Key
	if err := checkNotInUse(c, key); err != nil {
		return err
	}
	w, err := c.Writer()
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // nothing is written by closing a directory
	if err := AddPack(ctx, w, repo, record.Head, record.Work.Tip()); err != nil {
		return fmt.Errorf("add the commits to %s: %w", c.Top, err)
	}
	if err := w.MoveRef(key.Ref(), record.Head, record.Work.Seen); err != nil {
		return fmt.Errorf("add %s to %s: %w", key.Branch(), c.Top, err)
	}
	return nil
}

// AddPack adds to a checkout the objects that a commit of a repository has and
// the known commits have not.
func AddPack(ctx context.Context, w *checkout.Writer, repo *git.Repo, head string, known ...string) error {
	dir, err := os.MkdirTemp(repo.Dir(), "pack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it goes with the quarantine
	name, err := repo.PackTo(ctx, filepath.Join(dir, "pack"), head, known...)
	if err != nil || name == "" {
		return err
	}
	return w.AddPack(dir, "pack-"+name)
}
