// Package express serves the docker verbs that programs call all the time,
// exec and inspect, from a container's record and its guest's socket alone: no
// database, no engine, nothing but what a call needs. Whatever is not in the
// usual state is left to the whole program.
package express

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/dockercli"
	"github.com/atoll-run/atoll/internal/lease"
	"github.com/atoll-run/atoll/internal/machine"
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

// Enter dials the guest and shares the sandbox's lease.
func (b *Boxes) Enter(ctx context.Context, c *dockercli.Container) (*machine.Machine, func(), error) {
	if !c.Guest.Alive() {
		return nil, nil, dockercli.ErrElsewhere
	}
	book, err := lease.Open(filepath.Join(b.state, dockercli.LeasesFile))
	if err != nil {
		return nil, nil, err
	}
	held, err := book.Share(ctx, c.Guest.Lease)
	if err != nil {
		return nil, nil, err
	}
	m := machine.New(c.Guest.Dial, nil)
	return m, func() {
		_ = m.Close()
		held.Release()
	}, nil
}

// Held tells whether somebody holds a lock.
func (b *Boxes) Held(name string) bool {
	book, err := lease.Open(filepath.Join(b.state, dockercli.LeasesFile))
	if err != nil {
		return false
	}
	held, err := book.TryHold(dockercli.LockName(name))
	if err == nil {
		held.Release()
	}
	return errors.Is(err, lease.ErrHeld)
}

// AdmitEnv refuses variables by the rules of every sandbox.
func (b *Boxes) AdmitEnv(env []string) error { return AdmitEnv(env, nil) }

// AdmitEnv refuses variables that may not enter a sandbox. Here nothing is
// dropped in silence: whoever wrote the command line is told.
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

// The rest is elsewhere.

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
func (b *Boxes) Copy(context.Context, *machine.Files, *dockercli.Copy) ([]string, error) {
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
