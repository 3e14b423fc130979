// Package fastpath serves docker exec and docker inspect, which programs call most,
// from a container's record and its guest's socket alone: it opens no database and
// asks no engine. Everything else is left to the full program.
package fastpath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"sync/atomic"

	"github.com/atoll-run/atoll/internal/dockercli"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/policy/variable"
)

// Boxes are the sandboxes that run.
type Boxes struct{ state string }

var _ dockercli.Boxes = (*Boxes)(nil)

// New returns the boxes of a state directory. It opens nothing.
func New(state string) *Boxes { return &Boxes{state} }

// Dir is where records are kept.
func (b *Boxes) Dir() string { return filepath.Join(b.state, dockercli.RecordsDir) }

// State knows only sandboxes that run.
func (b *Boxes) State(_ context.Context, c *dockercli.Container) (dockercli.State, error) {
	if !c.Guest.Alive() {
		return "", dockercli.ErrElsewhere
	}
	return dockercli.StateRunning, nil
}

// Enter shares the sandbox's lease and dials the guest.
func (b *Boxes) Enter(ctx context.Context, c *dockercli.Container) (*machine.Machine, func(), error) {
	if c.Guest == nil || c.Guest.Paused {
		return nil, nil, dockercli.ErrElsewhere
	}
	held, err := b.book().Share(ctx, c.Guest.Lease)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, dockercli.ErrElsewhere
	} else if err != nil {
		return nil, nil, err
	}
	first, err := c.Guest.Dial(ctx) // makes sure that the guest is alive, too
	if err != nil {
		held.Release()
		return nil, nil, dockercli.ErrElsewhere
	}
	m := machine.New(beginningWith(first, c.Guest.Dial), &machine.Options{Direct: true})
	return m, func() {
		_ = m.Close()
		_ = first.Close()
		held.Release()
	}, nil
}

// beginningWith returns a dialer that gives out an open connection first.
func beginningWith(first net.Conn, dial machine.Dialer) machine.Dialer {
	var given atomic.Bool
	return func(ctx context.Context) (net.Conn, error) {
		if given.CompareAndSwap(false, true) {
			return first, nil
		}
		return dial(ctx)
	}
}

func (b *Boxes) book() *filelock.Locks {
	return filelock.Existing(filepath.Join(b.state, dockercli.LeasesFile))
}

// Held reports whether a lock is held.
func (b *Boxes) Held(name string) bool {
	held, err := b.book().TryHold(dockercli.LockName(name))
	if err == nil {
		held.Release()
	}
	return errors.Is(err, filelock.ErrHeld)
}

// AdmitEnv refuses variables by the rules of every sandbox.
func (b *Boxes) AdmitEnv(env []string) error { return AdmitEnv(env, nil) }

// AdmitEnv refuses variables that may not enter a sandbox, with an error instead of
// dropping them.
func AdmitEnv(env []string, allowed func(name string) bool) error {
	var all []error
	for _, entry := range env {
		name, value := dockercli.SplitVariable(entry)
		reason := variable.Reason(name, value)
		if reason == "" && variable.IsSecret(name) && (allowed == nil || !allowed(name)) {
			reason = variable.SecretReason
		}
		if reason != "" {
			all = append(all, fmt.Errorf("environment variable %s may not enter a sandbox: %s", name, reason))
		}
	}
	return errors.Join(all...)
}

// What follows needs the full program.

// Lock is elsewhere.
func (b *Boxes) Lock(context.Context, string) (func(), error) { return nil, dockercli.ErrElsewhere }

// Make is elsewhere.
func (b *Boxes) Make(context.Context, *dockercli.Container) error { return dockercli.ErrElsewhere }

// Start is elsewhere.
func (b *Boxes) Start(context.Context, *dockercli.Container) error { return dockercli.ErrElsewhere }

// End is elsewhere.
func (b *Boxes) End(context.Context, *dockercli.Container) error { return dockercli.ErrElsewhere }

// Pause is elsewhere.
func (b *Boxes) Pause(context.Context, *dockercli.Container, bool) error {
	return dockercli.ErrElsewhere
}

// Remove is elsewhere.
func (b *Boxes) Remove(context.Context, *dockercli.Container) error { return dockercli.ErrElsewhere }

// Copy is elsewhere.
func (b *Boxes) Copy(context.Context, *guestfs.Files, *dockercli.Copy) ([]string, error) {
	return nil, dockercli.ErrElsewhere
}

// Image is elsewhere.
func (b *Boxes) Image(context.Context, string) (*dockercli.Image, error) {
	return nil, dockercli.ErrElsewhere
}

// Images is elsewhere.
func (b *Boxes) Images(context.Context) ([]*dockercli.Image, error) {
	return nil, dockercli.ErrElsewhere
}

// Pull is elsewhere.
func (b *Boxes) Pull(context.Context, string, func(string)) error { return dockercli.ErrElsewhere }

// Tag is elsewhere.
func (b *Boxes) Tag(context.Context, string, string) error { return dockercli.ErrElsewhere }

// Networks is elsewhere.
func (b *Boxes) Networks(context.Context) ([]dockercli.Network, error) {
	return nil, dockercli.ErrElsewhere
}

// Backend is elsewhere.
func (b *Boxes) Backend(context.Context) string { return "" }
