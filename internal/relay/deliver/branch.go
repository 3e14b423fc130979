package deliver

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/run"
)

// BranchClaim is the claim of a run on a branch.
type BranchClaim struct {
	Key  branch.Key
	Run  string
	Tell func(string) // called while it waits; may be nil
}

// branchLock is the name of the one lock of a branch: of runs, of agents on the
// host, of work in containers, and of processes that send what was left.
func branchLock(key branch.Key) string { return "relay branch " + string(key) }

// HoldBranch waits for the lock of a branch, after all claims that came before.
// Work that no process carries out counts too: see clearBranch.
func (d *Deliverer) HoldBranch(ctx context.Context, c BranchClaim) (*filelock.Lock, error) {
	held, err := d.Locks.HoldInTurn(ctx, branchLock(c.Key), func(ahead int) {
		if c.Tell != nil {
			c.Tell(fmt.Sprintf("waiting for branch %s (%d before)", c.Key.Branch(), ahead))
		}
	})
	return d.heldAndClear(ctx, c, held, err)
}

// tryBranch is holdBranch for who does not wait: filelock.ErrHeld.
func (d *Deliverer) tryBranch(ctx context.Context, c BranchClaim) (*filelock.Lock, error) {
	held, err := d.Locks.TryHold(branchLock(c.Key))
	return d.heldAndClear(ctx, c, held, err)
}

func (d *Deliverer) heldAndClear(ctx context.Context, c BranchClaim, held *filelock.Lock, err error) (*filelock.Lock, error) {
	if err != nil {
		return nil, err
	}
	if err := d.clearBranch(ctx, c); err != nil {
		held.Release()
		return nil, err
	}
	return held, nil
}

// clearBranch refuses a branch that was prepared in a container: no process holds
// it, and only a person knows when it has ended. Commits of an agent whose process
// died are taken first: another's work on the branch would put them aside.
func (d *Deliverer) clearBranch(ctx context.Context, c BranchClaim) error {
	for _, other := range d.containerWorks(ctx) {
		if other.Work.Key == c.Key && other.Run != c.Run {
			return &run.Failure{Code: "branch_busy", Message: fmt.Sprintf(
				"run %s works on %s in container %s, until `atoll relay take %s`", other.Run, c.Key.Branch(), other.Container, other.Run)}
		}
	}
	for _, other := range d.agentWorks(ctx) {
		if other.Work.Key == c.Key && other.Run != c.Run {
			if _, _, err := d.takeAgent(ctx, other); err != nil {
				return d.notTaken(other, err)
			}
		}
	}
	return nil
}

// notTaken is the error of commits that stay where they are for now.
func (d *Deliverer) notTaken(w *AgentWork, err error) error {
	return errhint.With(fmt.Errorf("the commits that run %s left on %s cannot be taken: %w", w.Run, w.Work.Key.Branch(), err),
		"`atoll relay retry` tries again; removing "+AgentNotes(d.Settings).file(w.Run)+" gives them up")
}
