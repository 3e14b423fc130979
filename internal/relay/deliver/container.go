package deliver

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
	"github.com/atoll-run/atoll/internal/run"
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

func containerNotes(s *provide.Settings) Notes[ContainerWork] {
	return Notes[ContainerWork]{filepath.Join(s.Paths.AtollState, Dir, "containers")}
}

// PrepareContainer puts the project into a container, and the branch at current in
// its workspace. From then on the branch is that run's, until TakeContainer. tell is
// called while it waits for the branch.
func (d *Deliverer) PrepareContainer(ctx context.Context, c *ContainerWork, key branch.Key, tell func(string)) error {
	held, err := d.HoldBranch(ctx, BranchClaim{Key: key, Run: c.Run, Tell: tell})
	if err != nil {
		return err
	}
	defer held.Release()
	return d.PrepareHeld(ctx, c, key)
}

// PrepareHeld is PrepareContainer for who holds the branch.
func (d *Deliverer) PrepareHeld(ctx context.Context, c *ContainerWork, key branch.Key) error {
	relays, project, err := d.ProjectOf(WorkOf{Account: c.Account})
	if err != nil {
		return err
	}
	if _, err := relays.Load(c.Run); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, TakenAlready(c.Run))
	}
	site, leave, err := d.enterContainer(ctx, c, StepBefore)
	if err != nil {
		return err
	}
	work, err := relays.Prepare(ctx, project, site, key)
	if err == nil {
		c.Work = *work
		err = containerNotes(d.Settings).Save(c.Run, c)
	}
	return errors.Join(err, leave())
}

// TakenAlready is the error of a run whose commits were taken before.
func TakenAlready(run string) error {
	return errhint.With(fmt.Errorf("the commits of a run %s were taken already", run), "choose another --run-id")
}

// TakeContainer takes what was committed since PrepareContainer, judges it and
// sends it, or keeps it if the agent failed. The branch is free then.
func (d *Deliverer) TakeContainer(ctx context.Context, run string, about relay.About, failed bool) (*relay.Record, string, error) {
	c, err := d.containerWork(run)
	if err != nil {
		return nil, "", err
	}
	held, err := d.HoldBranch(ctx, BranchClaim{Key: c.Work.Key, Run: run})
	if err != nil {
		return nil, "", err
	}
	defer held.Release()
	return d.TakeHeld(ctx, c, about, failed)
}

// TakeHeld is TakeContainer for who holds the branch. The container is
// visited only if no earlier process took the commits.
func (d *Deliverer) TakeHeld(ctx context.Context, c *ContainerWork, about relay.About, failed bool) (*relay.Record, string, error) {
	leave := func() error { return nil }
	record, note, err := d.Deliver(ctx, &Delivery{
		Site: func(ctx context.Context) (site relay.Site, err error) {
			site, leave, err = d.enterContainer(ctx, c, StepAfter)
			return site, err
		},
		Order: relay.TakeRequest{Run: c.Run, Account: c.Account, Work: c.Work, Held: failed, About: about},
	})
	err = errors.Join(err, leave())
	if err != nil && record == nil {
		return nil, "", err // nothing was taken: it can be tried again
	}
	return record, note, errors.Join(err, containerNotes(d.Settings).Remove(c.Run))
}

// enterContainer visits a container, where no program may take longer than a
// step, until leave is called.
func (d *Deliverer) enterContainer(ctx context.Context, c *ContainerWork, step time.Duration) (site relay.Site, leave func() error, err error) {
	leave = func() error { return nil }
	engine, err := d.Engine(ctx, containerBackend)
	if err != nil {
		return site, leave, err
	}
	visit, err := engine.Visit(ctx, c.Container, c.Root)
	if err != nil {
		return site, leave, err
	}
	m := machine.New(visit.Dial, &machine.Options{Log: d.Logger})
	env := sandbox.EnvList(map[string]string{"HOME": c.Root, "PATH": provide.DefaultPath})
	site = relay.Site{Sandbox: machineSandbox{m, env, step}, Root: c.Root, Link: "current", Shared: true}
	return site, func() error { return errors.Join(m.Close(), visit.Close()) }, nil
}

func (d *Deliverer) containerWork(run string) (*ContainerWork, error) {
	works, err := containerNotes(d.Settings).list()
	for _, c := range works {
		if c.Run == run {
			return c, nil
		}
	}
	return nil, errors.Join(err, errhint.With(fmt.Errorf("nothing was prepared for run %q in any container", run), "`atoll relay prepare` does"))
}

// containerWorks are those that were prepared and not taken.
func (d *Deliverer) containerWorks(ctx context.Context) []*ContainerWork {
	works, err := containerNotes(d.Settings).list()
	if err != nil {
		d.Logger.WarnContext(ctx, "branches in containers", "error", err)
	}
	return works
}

// GatewayWork is what was prepared for a run at a gateway, or taken already by a
// process that did not get to the end; nil if nothing was.
func (d *Deliverer) GatewayWork(receipt *run.Receipt) (*ContainerWork, error) {
	notes := containerNotes(d.Settings)
	c, err := notes.load(notes.file(receipt.ID))
	if !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	relays, err := OpenRelays(d.Settings)
	if err != nil {
		return nil, err
	}
	record, err := relays.Load(receipt.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &ContainerWork{Run: record.Run, Account: record.Account, Work: record.Work}, nil
}
