package app

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/run"
)

// branchClaim is somebody who wants a branch for itself.
type branchClaim struct {
	key  branch.Key
	run  string
	tell func(string) // if set, is told that it waits
}

// branchLock is the name of the one lock of a branch: of runs, of agents on the
// host, of work in containers, and of whoever sends what they left.
func branchLock(key branch.Key) string { return "relay branch " + string(key) }

// holdBranch waits until nobody else works on a branch, after all who came
// before. Work that no process carries out counts too: see clearBranch.
func (a *App) holdBranch(ctx context.Context, c branchClaim) (*filelock.Lease, error) {
	held, err := a.Locks.HoldInTurn(ctx, branchLock(c.key), func(ahead int) {
		if c.tell != nil {
			c.tell(fmt.Sprintf("waiting for branch %s (%d before)", c.key.Branch(), ahead))
		}
	})
	return a.heldAndClear(ctx, c, held, err)
}

// tryBranch is holdBranch for who does not wait: filelock.ErrHeld.
func (a *App) tryBranch(ctx context.Context, c branchClaim) (*filelock.Lease, error) {
	held, err := a.Locks.TryHold(branchLock(c.key))
	return a.heldAndClear(ctx, c, held, err)
}

func (a *App) heldAndClear(ctx context.Context, c branchClaim, held *filelock.Lease, err error) (*filelock.Lease, error) {
	if err != nil {
		return nil, err
	}
	if err := a.clearBranch(ctx, c); err != nil {
		held.Release()
		return nil, err
	}
	return held, nil
}

// clearBranch refuses a branch that was prepared in a container: no process holds
// it, and only a person knows when it has ended. Commits of an agent whose process
// died are taken first: another's work on the branch would put them aside.
func (a *App) clearBranch(ctx context.Context, c branchClaim) error {
	for _, other := range a.containerWorks(ctx) {
		if other.Work.Key == c.key && other.Run != c.run {
			return &run.Failure{Code: "branch_busy", Message: fmt.Sprintf(
				"run %s works on %s in container %s, until `atoll relay take %s`", other.Run, c.key.Branch(), other.Container, other.Run)}
		}
	}
	for _, other := range a.agentWorks(ctx) {
		if other.Work.Key == c.key && other.Run != c.run {
			if _, _, err := a.takeAgent(ctx, other); err != nil {
				return a.notTaken(other, err)
			}
		}
	}
	return nil
}

// notTaken is the error of commits that stay where they are for now.
func (a *App) notTaken(w *AgentWork, err error) error {
	return errhint.With(fmt.Errorf("the commits that run %s left on %s cannot be taken: %w", w.Run, w.Work.Key.Branch(), err),
		"`atoll relay retry` tries again; removing "+agentNotes(a.Settings).file(w.Run)+" gives them up")
}
