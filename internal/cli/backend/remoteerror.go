package backend

import (
	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gate"
	"github.com/atoll-run/atoll/internal/gate/take"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// remoteError is a gateway's problem as an error of this process: its text is the
// problem's, and errors.Is finds the kind.
type remoteError struct {
	text string
	kind error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }

// kinds are the errors of this process by the codes of a gateway's problems.
func kinds() map[string]error {
	return map[string]error{
		"approval_not_found": approval.ErrNotFound, "approval_answered": approval.ErrAnswered, "approval_expired": approval.ErrExpired,
		"approval_replaced": approval.ErrReplaced, "approval_changed": approval.ErrChanged,
		"sync_none": overlay.ErrNone, "sync_unknown_path": gate.ErrUnknownPath, "sync_unknown_batch": gate.ErrNoBatch, "sync_changed": gate.ErrOtherHash,
		"sync_not_allowed": gate.ErrNotAllowed, "sync_many_deletions": gate.ErrManyDeletions, "sync_undone": gate.ErrUndone, "sync_busy": gate.ErrBusy,
		"sync_no_repository": take.ErrNoRepository, "sync_no_commits": take.ErrNothing, "sync_checked_out": take.ErrCheckedOut, "sync_diverged": take.ErrDiverged,
		"sync_conflict": &gate.ConflictError{}, "sandbox_busy": sandbox.ErrBusy,
	}
}

// knownError returns the error for a problem whose code is among the kinds, or nil.
func knownError(p *api.Problem) error {
	if kind := kinds()[p.Code]; kind != nil {
		return errhint.With(&remoteError{p.Detail, kind}, p.Hint)
	}
	return nil
}
