package provide

import (
	"context"
	"os"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/plan"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// ProvideBrowser makes the browser's sandbox of a session ready. It has no workspace; only
// the directory of a profile that is kept is made for it.
func (a *Installation) ProvideBrowser(ctx context.Context, who Subject) (*ReadySandbox, error) {
	a.PruneIfDue(ctx)
	b, err := a.planBrowser(ctx, who)
	if err != nil {
		return nil, err
	}
	held, err := a.HoldCopy(ctx, plan.ProfileDir(a.Paths.AtollState, b.ScopeKey))
	if err != nil {
		return nil, err
	}
	defer held()
	if err := a.prepareBrowser(b); err != nil {
		return nil, &sandbox.ProvisionError{Name: b.Spec.Name, Step: "profile", Err: err}
	}
	return a.ensure(ctx, who, b, false)
}

// prepareBrowser makes the directory of the profile, if it is kept, and pins the mounts.
func (a *Installation) prepareBrowser(b *plan.Plan) error {
	if b.Profile() != "" {
		if err := makeOwned(plan.ProfileDir(a.Paths.AtollState, b.ScopeKey), b.Spec.User); err != nil {
			return err
		}
	}
	return b.Pin()
}

// makeOwned makes a directory of mode 0700 that belongs to the sandbox's user.
func makeOwned(dir, user string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if owner := numericUser(user); owner != nil && os.Geteuid() == 0 {
		return os.Lchown(dir, owner.UID, owner.GID)
	}
	return nil
}

// planBrowser plans the browser's sandbox of a session and chooses its backend.
func (a *Installation) planBrowser(ctx context.Context, who Subject) (*plan.Plan, error) {
	p, err := a.Plan(who)
	if err != nil {
		return nil, err
	}
	if err := p.Refusal(); err != nil {
		return nil, err
	}
	b, err := p.Browser()
	if err == nil {
		err = b.Refusal()
	}
	if err != nil {
		return nil, err
	}
	a.preferBuilt(ctx, b)
	if _, err := a.chooseBackend(ctx, b); err != nil {
		return nil, &sandbox.ProvisionError{Name: b.Spec.Name, Step: "backend", Err: imageProblem(b, err)}
	}
	if err := a.checkBrowserImage(ctx, b); err != nil {
		return nil, &sandbox.ProvisionError{Name: b.Spec.Name, Step: "image", Err: err}
	}
	return b, nil
}

// preferBuilt takes the browser's own image, where it was built, before the programs of
// this machine.
func (a *Installation) preferBuilt(ctx context.Context, p *plan.Plan) {
	if UsesHostPrograms(p.Agent) && a.ImportedImage(ctx, p.Spec.Image) != nil {
		p.Agent.Origins["sandbox.docker.image"] = config.Origin{Source: "derived", Path: "the image was built"}
	}
}
