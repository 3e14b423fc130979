package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/relay/git"
)

// Publish makes a directory a bare repository with all branches of the remote,
// for programs that may read the code and have no credential. It returns the
// commit of the base.
func (r *Relay) Publish(ctx context.Context, p *Project, dir string) (string, error) {
	if p.Checkout != nil {
		return "", errors.New("a checkout is no remote that could be copied")
	}
	remote, done, err := p.authenticate(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	repo, err := git.OpenOrInit(dir, mirrorLimits())
	if err != nil {
		return "", err
	}
	heads, err := repo.Heads(ctx, &remote, p.baseRef())
	if err != nil {
		return "", err
	}
	if heads[p.baseRef()] == "" {
		return "", fmt.Errorf("the remote repository has no branch %q", p.Base)
	}
	if err := repo.Fetch(ctx, &remote, "refs/heads/*"); err != nil {
		return "", err
	}
	return heads[p.baseRef()], repo.PointHead(p.baseRef())
}
