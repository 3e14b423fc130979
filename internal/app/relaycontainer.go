package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// ContainerWork is a branch in a container that Atoll did not make: a gateway's,
// whose agents work in a volume that outlives them. Nothing of the volume is
// cleaned; the next work on the branch resets it.
type ContainerWork struct {
	Run       string     `json:"run"`
	Account   string     `json:"account,omitempty"`
	Container string     `json:"container"`
	Root      string     `json:"root"` // the workspace, inside
	Work      relay.Work `json:"work"`
}

// ContainerWorkspace is where such containers have their workspace if nothing else
// is said.
const ContainerWorkspace = "/workspace"

// containerBackend is the engine that such containers are on.
const containerBackend = provide.BackendDocker

func containerNotes(s *provide.Settings) workNotes[ContainerWork] {
	return workNotes[ContainerWork]{filepath.Join(s.Paths.AtollState, RelayDir, "containers")}
}

// PrepareContainer puts the project into a container and the branch in front of
// whoever works there, at current in its workspace. From then on the branch is
// that run's, until TakeContainer. tell is told that it waits.
func (a *App) PrepareContainer(ctx context.Context, c *ContainerWork, key branch.Key, tell func(string)) error {
	held, err := a.holdBranch(ctx, branchClaim{key: key, run: c.Run, tell: tell})
	if err != nil {
		return err
	}
	defer held.Release()
	return a.prepareContainer(ctx, c, key)
}

// prepareContainer is PrepareContainer for who holds the branch.
func (a *App) prepareContainer(ctx context.Context, c *ContainerWork, key branch.Key) error {
	relays, project, err := a.relayFor(RelayFor{Account: c.Account})
	if err != nil {
		return err
	}
	if _, err := relays.Load(c.Run); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, takenAlready(c.Run))
	}
	site, leave, err := a.enterContainer(ctx, c, relayBefore)
	if err != nil {
		return err
	}
	work, err := relays.Prepare(ctx, project, site, key)
	if err == nil {
		c.Work = *work
		err = containerNotes(a.Settings).save(c.Run, c)
	}
	return errors.Join(err, leave())
}

func takenAlready(run string) error {
	return errhint.With(fmt.Errorf("the commits of a run %s were taken already", run), "choose another --run-id")
}

// TakeContainer takes what was committed since PrepareContainer, judges it and
// sends it, or keeps it if the agent failed. The branch is free then.
func (a *App) TakeContainer(ctx context.Context, run string, about relay.About, failed bool) (*relay.Record, string, error) {
	c, err := a.containerWork(run)
	if err != nil {
		return nil, "", err
	}
	held, err := a.holdBranch(ctx, branchClaim{key: c.Work.Key, run: run})
	if err != nil {
		return nil, "", err
	}
	defer held.Release()
	return a.takeContainer(ctx, c, about, failed)
}

// takeContainer is TakeContainer for who holds the branch. The container is
// visited only if no earlier process took the commits.
func (a *App) takeContainer(ctx context.Context, c *ContainerWork, about relay.About, failed bool) (*relay.Record, string, error) {
	leave := func() error { return nil }
	record, note, err := a.deliver(ctx, &delivery{
		site: func(ctx context.Context) (site relay.Site, err error) {
			site, leave, err = a.enterContainer(ctx, c, relayAfter)
			return site, err
		},
		order: relay.TakeRequest{Run: c.Run, Account: c.Account, Work: c.Work, Held: failed, About: about},
	})
	err = errors.Join(err, leave())
	if err != nil && record == nil {
		return nil, "", err // nothing was taken: it can be tried again
	}
	return record, note, errors.Join(err, containerNotes(a.Settings).remove(c.Run))
}

// enterContainer visits a container, where no program may take longer than a
// step, until leave is called.
func (a *App) enterContainer(ctx context.Context, c *ContainerWork, step time.Duration) (site relay.Site, leave func() error, err error) {
	leave = func() error { return nil }
	engine, err := a.Engine(ctx, containerBackend)
	if err != nil {
		return site, leave, err
	}
	visit, err := engine.Visit(ctx, c.Container, c.Root)
	if err != nil {
		return site, leave, err
	}
	m := machine.New(visit.Dial, &machine.Options{Log: a.Logger})
	env := sandbox.EnvList(map[string]string{"HOME": c.Root, "PATH": provide.DefaultPath})
	site = relay.Site{Sandbox: relayPlace{m, env, step}, Root: c.Root, Link: "current", Shared: true}
	return site, func() error { return errors.Join(m.Close(), visit.Close()) }, nil
}

func (a *App) containerWork(run string) (*ContainerWork, error) {
	works, err := containerNotes(a.Settings).list()
	for _, c := range works {
		if c.Run == run {
			return c, nil
		}
	}
	return nil, errors.Join(err, errhint.With(fmt.Errorf("nothing was prepared for run %q in any container", run), "`atoll relay prepare` does"))
}

// containerWorks are those that were prepared and not taken.
func (a *App) containerWorks(ctx context.Context) []*ContainerWork {
	works, err := containerNotes(a.Settings).list()
	if err != nil {
		a.Logger.WarnContext(ctx, "branches in containers", "error", err)
	}
	return works
}
