package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// Instance is one container of ours. Everything is asked of it by its immutable
// id: a name can be given to another container in the meantime.
type Instance struct {
	runtime  *Runtime
	name     string
	id       string
	wire     string   // the shared directory, on this host
	layered  bool     // it has layers on shared volumes
	overlays []string // names of volumes
	checked  []pin    // what its mounts were when this process made it

	mu   sync.Mutex
	seen sandbox.Summary
	pid  int // of its first process, 0 if it does not run
}

var (
	_ sandbox.Instance    = (*Instance)(nil)
	_ sandbox.MountKeeper = (*Instance)(nil)
	_ sandbox.Sweeper     = (*Runtime)(nil)
)

// Open finds a container of ours by name, in one call.
func (r *Runtime) Open(ctx context.Context, name string) (sandbox.Instance, error) {
	i, err := r.open(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("container %q: %w", name, err)
	}
	return i, nil
}

func (r *Runtime) open(ctx context.Context, name string) (*Instance, error) {
	found, err := r.findContainer(ctx, name)
	if err != nil {
		return nil, err
	}
	// The engine also finds a container by the beginning of its id.
	if strings.TrimPrefix(found.Name, "/") != name {
		return nil, sandbox.ErrNotFound
	}
	if found.Config.Labels[sandbox.LabelInstallation] != r.options.Installation {
		return nil, foreign(name)
	}
	return r.instance(name, found), nil
}

// findContainer looks at one container: at a glance, or closely if that is not enough.
func (r *Runtime) findContainer(ctx context.Context, name string) (*containerState, error) {
	seen, err := r.engine.quickInspect(ctx, name)
	if !errors.Is(err, errNoQuickInspect) {
		return seen, err
	}
	found, err := r.inspect(ctx, name)
	if err != nil {
		return nil, err
	}
	return containerStateOf(found), nil
}

func (r *Runtime) instance(name string, found *containerState) *Instance {
	i := &Instance{runtime: r, name: name, id: found.ID, wire: wireDir(r.options.StateDir, name), layered: found.Config.Labels[labelLayered] != "",
		overlays: strings.Fields(found.Config.Labels[labelOverlays])}
	i.updateSeen(found)
	return i
}

// inspect asks for one container; ErrNotFound if there is none.
func (r *Runtime) inspect(ctx context.Context, nameOrID string) (*container.InspectResponse, error) {
	found, err := ask(ctx, r.engine, func(c *client.Client) (client.ContainerInspectResult, error) {
		return c.ContainerInspect(ctx, nameOrID, client.ContainerInspectOptions{})
	})
	if isNotFound(err) {
		return nil, sandbox.ErrNotFound
	}
	if err == nil && (found.Container.State == nil || found.Container.Config == nil) {
		err = errors.New("the engine's answer is incomplete")
	}
	return &found.Container, err
}

// updateSeen remembers what the engine said.
func (i *Instance) updateSeen(found *containerState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pid = found.State.Pid
	i.seen = summarize(i.name, found)
}

// Seen is what the engine said last.
func (i *Instance) Seen() sandbox.Summary {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.seen
}

// State asks the engine.
func (i *Instance) State(ctx context.Context) (sandbox.State, error) {
	found, err := i.inspectAgain(ctx)
	if err != nil {
		return "", err
	}
	return stateOf(found.State.Status), nil
}

// inspectAgain asks the engine and remembers the answer.
func (i *Instance) inspectAgain(ctx context.Context) (*container.InspectResponse, error) {
	found, err := i.runtime.inspect(ctx, i.id)
	if err != nil {
		return nil, fmt.Errorf("container %q: %w", i.name, err)
	}
	i.updateSeen(containerStateOf(found))
	return found, nil
}

func summarize(name string, found *containerState) sandbox.Summary {
	made, _ := time.Parse(time.RFC3339Nano, found.Created)
	return sandbox.Summary{
		Name: name, ID: found.ID, State: stateOf(found.State.Status), CreatedAt: made, Labels: found.Config.Labels,
		Image: imageOf(found.Config.Labels, found.Config.Image), ImageID: found.Image,
	}
}

// imageOf is the reference that was asked for, which an engine may have written
// in another way.
func imageOf(labels map[string]string, engines string) string {
	if asked := labels[labelImage]; asked != "" {
		return asked
	}
	return engines
}

// stateOf reads both engines' words. One that is not known is not trusted to
// mean something alive.
func stateOf(status container.ContainerState) sandbox.State {
	switch status {
	case container.StateCreated, "configured", "initialized":
		return sandbox.StateCreated
	case container.StateRunning, container.StateRestarting, "stopping":
		return sandbox.StateRunning
	case container.StatePaused:
		return sandbox.StatePaused
	case container.StateExited, "stopped":
		return sandbox.StateStopped
	}
	return sandbox.StateDead
}

// List returns every container with our label.
func (r *Runtime) List(ctx context.Context) ([]sandbox.Summary, error) {
	label := sandbox.LabelInstallation + "=" + r.options.Installation
	found, err := ask(ctx, r.engine, func(c *client.Client) (client.ContainerListResult, error) {
		return c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", label)})
	})
	if err != nil {
		return nil, fmt.Errorf("list of containers: %w", err)
	}
	var list []sandbox.Summary
	for _, c := range found.Items {
		if len(c.Names) == 0 || c.Labels[sandbox.LabelInstallation] != r.options.Installation {
			continue // being removed, or an engine that reads filters otherwise
		}
		list = append(list, sandbox.Summary{
			Name: strings.TrimPrefix(c.Names[0], "/"), ID: c.ID, State: stateOf(c.State), CreatedAt: time.Unix(c.Created, 0),
			Labels: c.Labels, Image: imageOf(c.Labels, c.Image), ImageID: c.ImageID,
		})
	}
	return list, nil
}
