package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
)

// A Claimer is an instance that has something to do when it is taken out of a pool and
// becomes the sandbox of spec: to note that on its machinery, or to fetch the workspace.
// It happens once, before the guest is told. After an error the instance is removed. An
// instance that is none cannot be started again once it has stopped: where its mounts
// lead to by name has changed, so it is made anew.
type Claimer interface {
	Claim(ctx context.Context, spec *Spec) error
}

// A ClaimKeeper is an instance whose machinery can lose the note of its claim, as a cluster
// does that is restored from a snapshot.
type ClaimKeeper interface {
	// KeepClaim notes the claim again if the machinery does not have it any more. It asks the
	// machinery nothing.
	KeepClaim(ctx context.Context, spec *Spec) error
}

// keepClaim notes the claim of a sandbox of spec again where it was lost.
func keepClaim(ctx context.Context, inst Instance, spec *Spec) error {
	if keeper, ok := inst.(ClaimKeeper); ok {
		return keeper.KeepClaim(ctx, spec)
	}
	return nil
}

// claimTries is how many sandboxes of a pool a claim tries to take at most.
const claimTries = 16

// Claim is a sandbox that was taken out of its pool, for one name. It never returns to
// the pool: what is not used is removed.
type Claim struct {
	manager *Manager
	entry   *Entry
	lock    *filelock.Lock
	used    bool // it has left the pool, for a name or for removal
	given   bool // it is the sandbox of a name
}

// Name returns the name that the runtime has for the sandbox.
func (c *Claim) Name() string { return c.entry.ContainerName }

// Workspace returns the directory of the host that the sandbox has as its workspace.
func (c *Claim) Workspace() string { return c.entry.WorkspaceDir }

// Shape returns what the sandbox was made with.
func (c *Claim) Shape() string { return c.entry.ConfigHash }

// gave reports whether the sandbox of a claim became that of a name.
func (c *Claim) gave() bool { return c != nil && c.given }

// Reserve takes a sandbox with the shape of spec out of the pool of its agent; nil if none
// is ready, or if it needs what a sandbox of a pool has not. Of all processes that try, one
// gets it.
func (m *Manager) Reserve(ctx context.Context, spec *Spec) (*Claim, error) {
	names, err := m.Registry.candidates(ctx, spec.AgentID, Shape(spec), claimTries)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	if own, err := m.hasOwnRoots(spec); own || err != nil {
		return nil, err
	}
	for _, name := range names {
		c, err := m.reserve(ctx, name)
		if c != nil || err != nil {
			return c, err
		}
	}
	return nil, nil
}

// reserve takes one sandbox out of its pool; nil if another was quicker. The change lock
// comes first: what is taken and not locked was left by a crash, and anyone removes it.
func (m *Manager) reserve(ctx context.Context, name string) (*Claim, error) {
	lock, err := m.Leases.TryHold(changeLock(name))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	m.Checkpoint("before reserve")
	mine, err := m.Registry.take(ctx, name)
	if err != nil || !mine {
		lock.Release()
		return nil, err
	}
	m.Checkpoint("after reserve")
	entry, err := m.Registry.Get(ctx, name)
	if err != nil {
		lock.Release()
		return nil, err
	}
	return &Claim{manager: m, entry: entry, lock: lock}, nil
}

// Release ends the claim. A sandbox that did not become that of a name is removed.
func (c *Claim) Release(ctx context.Context) {
	if c == nil {
		return
	}
	defer c.lock.Release()
	if c.used {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := c.manager.removeEntry(ctx, c.entry, 0); err != nil {
		c.manager.Logger.WarnContext(ctx, "sandbox of a pool not removed yet", "sandbox", c.Name(), "error", err)
	}
}

// claimOrCreate makes the sandbox of spec out of the one that was taken for it from a
// pool, or else anew. The caller holds the change lock.
func (m *Manager) claimOrCreate(ctx context.Context, spec *Spec) (Instance, *machine.Machine, error) {
	if spec.Claim == nil {
		return m.create(ctx, spec)
	}
	inst, mach, err := m.claim(ctx, spec)
	spec.Claim.given = err == nil
	if err == nil || ctx.Err() != nil {
		return inst, mach, err
	}
	m.Logger.WarnContext(ctx, "sandbox of a pool not usable, another is made", "sandbox", spec.Name, "member", spec.Claim.Name(), "error", err)
	return m.create(ctx, spec)
}

// claim gives the sandbox of a claim its identity: first in the registry, then on its
// machinery, then inside. On failure it is removed.
func (m *Manager) claim(ctx context.Context, spec *Spec) (_ Instance, _ *machine.Machine, err error) {
	entry := m.intent(spec)
	entry.MadeAs = spec.Claim.Name()
	m.Checkpoint("before claim")
	if err := m.Registry.transfer(ctx, entry); err != nil {
		return nil, nil, provision(spec, "register", err)
	}
	spec.Claim.used = true
	m.Checkpoint("after claim")
	defer func() {
		if err != nil {
			err = errors.Join(err, m.unclaim(ctx, entry))
		}
	}()
	if err := m.Registry.SetSettings(ctx, spec.Name, spec.Settings); err != nil {
		return nil, nil, provision(spec, "register", err)
	}
	inst, err := m.openClaimed(ctx, spec, entry)
	if err != nil {
		return nil, nil, provision(spec, "claim", err)
	}
	mach, err := m.identify(ctx, spec, inst)
	if err != nil {
		return nil, nil, provision(spec, "identity", err)
	}
	m.Checkpoint("after identity")
	if err := m.Registry.SetPhase(ctx, spec.Name, PhaseReady); err != nil {
		_ = mach.Close()
		return nil, nil, provision(spec, "register", err)
	}
	m.Checkpoint("after ready")
	return inst, mach, nil
}

// unclaim removes a sandbox that could not be given its identity, with its row.
func (m *Manager) unclaim(ctx context.Context, entry *Entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return m.removeEntry(ctx, entry, 0)
}

// openClaimed opens the sandbox of a claim on its machinery, and has that note whose it is.
func (m *Manager) openClaimed(ctx context.Context, spec *Spec, entry *Entry) (Instance, error) {
	rt, err := m.Runtime(ctx, spec.Backend)
	if err != nil {
		return nil, err
	}
	inst, err := rt.Open(ctx, entry.MadeAs)
	if err != nil {
		return nil, err
	}
	switch {
	case inst.Seen().State != StateRunning:
		return nil, fmt.Errorf("sandbox %q: %w", entry.MadeAs, ErrNotRunning)
	case isDetached(inst, spec):
		return nil, mountsExchanged(spec)
	}
	if err := unlimited(inst); err != nil {
		return nil, err
	}
	if err := checkImage(ctx, rt, inst, spec); err != nil {
		return nil, err
	}
	if c, ok := inst.(Claimer); ok {
		if err := c.Claim(ctx, spec); err != nil {
			return nil, err
		}
	}
	m.Checkpoint("after machinery")
	return inst, nil
}

// checkImage refuses a sandbox that was made from another image than the one that its
// reference names now.
func checkImage(ctx context.Context, rt Runtime, inst Instance, spec *Spec) error {
	id, err := currentImage(ctx, rt, spec.Image)
	if err == nil && id != "" && id != inst.Seen().ImageID {
		return fmt.Errorf("image %s is another one than it was made from", spec.Image)
	}
	return err
}

// identify tells the guest whose sandbox it is, over the wire that is returned.
func (m *Manager) identify(ctx context.Context, spec *Spec, inst Instance) (*machine.Machine, error) {
	mach, err := m.reach(ctx, spec, inst)
	if err != nil {
		return nil, err
	}
	if err := mach.Identify(ctx, rand.Text(), spec.Name); err != nil {
		_ = mach.Close()
		return nil, err
	}
	return mach, nil
}

// isOver reports whether a sandbox that came out of a pool has stopped and cannot be
// started again.
func isOver(inst Instance, entry *Entry) bool {
	if entry == nil || entry.MadeAs == "" {
		return false
	}
	_, ok := inst.(Claimer)
	state := inst.Seen().State
	return !ok && state != StateRunning && state != StatePaused
}

// MakePooled makes a sandbox for a pool, started and set up. See PoolSpec.
func (m *Manager) MakePooled(ctx context.Context, spec *Spec) (err error) {
	defer m.watchStart(ctx, spec, ActivityPool, time.Now(), &err)
	lock, err := m.Leases.Hold(ctx, changeLock(spec.Name))
	if err != nil {
		return provision(spec, "lock", err)
	}
	defer lock.Release()
	_, mach, err := m.create(ctx, spec)
	if err != nil {
		return provision(spec, "create", err)
	}
	return mach.Close()
}
