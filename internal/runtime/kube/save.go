package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath/archive"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// sizeFactor is how many times the size of its workspace a sandbox may bring home. Files count
// by their length there: what a sparse file has no blocks for and each name of a hard link
// takes no room in the pod, and does on the host.
const sizeFactor = 2

// mostBytes is how much of a copy is brought home at most.
func (r *Runtime) mostBytes(c *copied) (int64, error) {
	key, size := "workspaceSize", r.settings.WorkspaceSize
	if v := r.settings.WorkspaceVolume; v != nil && c.Volume {
		key, size = "workspaceVolume.size", v.Size
	}
	room, err := resource.ParseQuantity(size)
	if err != nil {
		return 0, fmt.Errorf("kubernetes.%s %q: %w", key, size, err)
	}
	if most := room.Value(); most < archive.MaxBytes/sizeFactor {
		return most * sizeFactor, nil
	}
	return archive.MaxBytes, nil
}

// tooLarge adds the remedy to the error of a copy that is larger than may be brought home.
func tooLarge(err error) error {
	if !errors.Is(err, archive.ErrTooLarge) {
		return err
	}
	return errhint.With(fmt.Errorf("%d times its size at most is brought home, and sparse files and each name of a hard link count with their length: %w", sizeFactor, err),
		"remove files in it, or raise kubernetes.workspaceSize; to lose its changes: atoll rm --discard")
}

// Save brings the copies home while the sandbox runs. An API server that is away says nothing
// about the sandbox.
func (i *Instance) Save(ctx context.Context) error {
	state, err := i.State(ctx)
	if err != nil || state != sandbox.StateRunning || !fetchesAny(i.current()) {
		return err
	}
	m := i.wire(i.Dial)
	defer m.Close()
	if err = i.reach(ctx, m); err != nil && !errors.Is(err, machine.ErrTransport) {
		return fmt.Errorf("sandbox %q: %w", i.name, err)
	}
	if err == nil {
		err = i.fetchHome(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("sandbox %q: %w: %w", i.name, sandbox.ErrNotSaved, err)
	}
	return nil
}

// answerTimeout is how long a guest may take to answer before its copies are fetched.
const answerTimeout = 20 * time.Second

func (i *Instance) reach(ctx context.Context, m *machine.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return m.Reach(ctx)
}

// fetchHome fetches the copies, and notes that they are home.
func (i *Instance) fetchHome(ctx context.Context, m *machine.Machine) error {
	if err := i.fetchCopies(ctx, m); err != nil {
		return err
	}
	return i.noteHome(ctx, m)
}
