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
	"github.com/atoll-run/atoll/internal/policy/variable"
)

// Entry is the way into the sandboxes that run.
type Entry struct{ state string }

var _ dockercli.Entry = (*Entry)(nil)

// New returns the entry of a state directory. It opens nothing.
func New(state string) *Entry { return &Entry{state} }

// Dir is where records are kept.
func (e *Entry) Dir() string { return filepath.Join(e.state, dockercli.RecordsDir) }

// State knows only sandboxes that run.
func (e *Entry) State(_ context.Context, c *dockercli.Container) (dockercli.State, error) {
	if !c.Guest.Alive() {
		return "", dockercli.ErrElsewhere
	}
	return dockercli.StateRunning, nil
}

// Enter shares the sandbox's lease and dials the guest.
func (e *Entry) Enter(ctx context.Context, c *dockercli.Container) (*machine.Machine, func(), error) {
	if c.Guest == nil || c.Guest.Paused {
		return nil, nil, dockercli.ErrElsewhere
	}
	held, err := e.locks().Share(ctx, c.Guest.Lease)
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

func (e *Entry) locks() *filelock.Locks {
	return filelock.Existing(filepath.Join(e.state, dockercli.LeasesFile))
}

// Held reports whether a lock is held.
func (e *Entry) Held(name string) bool {
	held, err := e.locks().TryHold(dockercli.LockName(name))
	if err == nil {
		held.Release()
	}
	return errors.Is(err, filelock.ErrHeld)
}

// AdmitEnv refuses variables by the rules of every sandbox.
func (e *Entry) AdmitEnv(env []string) error { return AdmitEnv(env, nil) }

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
