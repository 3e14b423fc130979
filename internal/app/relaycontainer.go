package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/sandbox"
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

// containerBackend is the engine that such containers are on.
const containerBackend = backendDocker

func (a *App) containerWorks() string {
	return filepath.Join(a.Paths.AtollState, RelayDir, "containers")
}

// PrepareContainer puts the project into a container and the branch in front of
// whoever works there, at current in its workspace. From then on the branch is
// that run's, until TakeContainer.
func (a *App) PrepareContainer(ctx context.Context, c *ContainerWork, key branch.Key) error {
	relays, project, err := a.relayFor(c.Account)
	if err != nil {
		return err
	}
	held, err := a.holdBranch(ctx, string(key), nil)
	if err != nil {
		return err
	}
	defer held.Release()
	if err := a.containerFree(relays, c, key); err != nil {
		return err
	}
	return a.inContainer(ctx, c, func(site relay.Site) error {
		work, err := relays.Prepare(ctx, project, site, key)
		if err != nil {
			return err
		}
		c.Work = *work
		return a.noteContainerWork(c)
	})
}

// containerFree refuses a branch on which another run works already.
func (a *App) containerFree(relays *Relays, c *ContainerWork, key branch.Key) error {
	if _, err := relays.Load(c.Run); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, advice.With(fmt.Errorf("the commits of a run %s were taken already", c.Run), "choose another --run-id"))
	}
	open, err := a.ContainerWorks()
	if err != nil {
		return err
	}
	for _, other := range open {
		if other.Work.Key == key && other.Run != c.Run {
			return advice.With(fmt.Errorf("run %s works on %s in container %s", other.Run, key.Branch(), other.Container), "when it has ended: atoll relay take "+other.Run)
		}
	}
	return nil
}

// TakeContainer takes what was committed since PrepareContainer, judges it and
// sends it, or keeps it if the agent failed. The branch is free then.
func (a *App) TakeContainer(ctx context.Context, run string, about relay.About, failed bool) (*relay.Record, string, error) {
	c, err := a.containerWork(run)
	if err != nil {
		return nil, "", err
	}
	held, err := a.holdBranch(ctx, string(c.Work.Key), nil)
	if err != nil {
		return nil, "", err
	}
	defer held.Release()
	var record *relay.Record
	var note string
	err = a.inContainer(ctx, c, func(site relay.Site) error {
		record, note, err = a.deliver(ctx, &delivery{
			site:  func(context.Context) (relay.Site, error) { return site, nil },
			order: relay.Order{Run: c.Run, Account: c.Account, Work: c.Work, Held: failed, About: about},
		})
		return err
	})
	if err != nil && record == nil {
		return nil, "", err // nothing was taken: it can be tried again
	}
	return record, note, errors.Join(err, os.Remove(a.containerFile(run)))
}

// inContainer visits a container.
func (a *App) inContainer(ctx context.Context, c *ContainerWork, do func(relay.Site) error) (err error) {
	engine, err := a.runtimes.docker(ctx, containerBackend)
	if err != nil {
		return err
	}
	visit, err := engine.Visit(ctx, c.Container, c.Root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, visit.Close()) }()
	m := machine.New(visit.Dial, &machine.Options{Log: a.logger})
	defer func() { err = errors.Join(err, m.Close()) }()
	env := sandbox.EnvList(map[string]string{"HOME": c.Root, "PATH": defaultPath})
	return do(relay.Site{Place: relayPlace{m, env, relayBefore}, Root: c.Root, Link: "current", Shared: true})
}

func (a *App) containerFile(run string) string { return filepath.Join(a.containerWorks(), run+".json") }

func (a *App) noteContainerWork(c *ContainerWork) error {
	if err := os.MkdirAll(a.containerWorks(), 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(a.containerFile(c.Run), text, 0o600)
}

func (a *App) containerWork(run string) (*ContainerWork, error) {
	works, err := a.ContainerWorks()
	for _, c := range works {
		if c.Run == run {
			return c, nil
		}
	}
	return nil, errors.Join(err, advice.With(fmt.Errorf("nothing was prepared for run %q in any container", run), "`atoll relay prepare` does"))
}

// ContainerWorks are those that were prepared and not taken.
func (a *App) ContainerWorks() (works []*ContainerWork, err error) {
	files, err := filepath.Glob(filepath.Join(a.containerWorks(), "*.json"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // taken meanwhile
		}
		var c ContainerWork
		if err == nil {
			err = json.Unmarshal(text, &c)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		works = append(works, &c)
	}
	return works, err
}
