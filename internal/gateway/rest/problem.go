package rest

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gate"
	"github.com/atoll-run/atoll/internal/gate/take"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/pools"
	"github.com/atoll-run/atoll/internal/gateway/publicerr"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/store"
)

// errorKinds map errors to statuses and codes; the first that matches counts.
func errorKinds() []errorKind {
	return []errorKind{
		{access.ErrDenied, http.StatusUnauthorized, "unauthorized"},
		{access.ErrScope, http.StatusForbidden, "forbidden"},
		{access.ErrTooMany, http.StatusTooManyRequests, "too_many_requests"},
		{access.ErrQuota, http.StatusTooManyRequests, "quota_exceeded"},
		{membudget.ErrHolder, http.StatusTooManyRequests, "too_many_bytes"},
		{membudget.ErrTotal, http.StatusServiceUnavailable, "busy"},
		{store.ErrFull, http.StatusInsufficientStorage, "disk_full"},
		{run.ErrNotFound, http.StatusNotFound, "run_not_found"},
		{run.ErrIDReused, http.StatusConflict, "run_id_used"},
		{session.ErrInvalid, http.StatusUnprocessableEntity, "invalid_request"},
		{session.ErrNotFound, http.StatusNotFound, "session_not_found"},
		{session.ErrKeyReused, http.StatusUnprocessableEntity, "idempotency_key_used"},
		{session.ErrBusy, http.StatusServiceUnavailable, "busy"},
		{session.ErrDraining, http.StatusServiceUnavailable, "draining"},
		{approval.ErrNotFound, http.StatusNotFound, "approval_not_found"},
		{approval.ErrAnswered, http.StatusConflict, "approval_answered"},
		{approval.ErrExpired, http.StatusConflict, "approval_expired"},
		{approval.ErrReplaced, http.StatusConflict, "approval_replaced"},
		{approval.ErrChanged, http.StatusConflict, "approval_changed"},
		{overlay.ErrNone, http.StatusNotFound, "sync_none"},
		{gate.ErrUnknownPath, http.StatusNotFound, "sync_unknown_path"},
		{gate.ErrNoBatch, http.StatusNotFound, "sync_unknown_batch"},
		{gate.ErrNoSet, http.StatusConflict, "sync_changed"},
		{gate.ErrOtherHash, http.StatusConflict, "sync_changed"},
		{gate.ErrNotAllowed, http.StatusConflict, "sync_not_allowed"},
		{gate.ErrManyDeletions, http.StatusConflict, "sync_many_deletions"},
		{gate.ErrUndone, http.StatusConflict, "sync_undone"},
		{gate.ErrGone, http.StatusConflict, "sync_undone"},
		{gate.ErrBusy, http.StatusConflict, "sync_busy"},
		{checkout.ErrNone, http.StatusConflict, "sync_no_repository"},
		{checkout.ErrBare, http.StatusConflict, "sync_no_repository"},
		{take.ErrNoRepository, http.StatusConflict, "sync_no_repository"},
		{take.ErrNoGit, http.StatusConflict, "sync_no_repository"},
		{take.ErrNothing, http.StatusConflict, "sync_no_commits"},
		{take.ErrChanged, http.StatusConflict, "sync_changed"},
		{take.ErrCheckedOut, http.StatusConflict, "sync_checked_out"},
		{take.ErrDiverged, http.StatusConflict, "sync_diverged"},
		{gate.ErrNoReason, http.StatusUnprocessableEntity, "invalid_request"},
		{provide.ErrQuota, http.StatusTooManyRequests, "quota_exceeded"},
		{service.ErrNoModel, http.StatusUnprocessableEntity, "no_model"},
		{pools.ErrNoAgent, http.StatusNotFound, "agent_not_found"},
		{pools.ErrSize, http.StatusUnprocessableEntity, "invalid_request"},
		{sandboxes.ErrNotFound, http.StatusNotFound, "sandbox_not_found"},
		{sandboxes.ErrEgress, http.StatusForbidden, "egress_not_allowed"},
		{sandboxes.ErrLimit, http.StatusForbidden, "limit_exceeds_quota"},
		{sandboxes.ErrGit, http.StatusUnprocessableEntity, "git_failed"},
		{sandboxes.ErrNoTemplate, http.StatusNotFound, "template_not_found"},
		{sandboxes.ErrTemplateExists, http.StatusConflict, "template_exists"},
		{sandboxes.ErrStopped, http.StatusConflict, "sandbox_stopped"},
		{sandboxes.ErrEnding, http.StatusConflict, "sandbox_ending"},
		{sandbox.ErrNotSaved, http.StatusConflict, "sandbox_not_saved"},
		{sandbox.ErrNoImage, http.StatusUnprocessableEntity, "no_such_image"},
		{machine.ErrNoProcess, http.StatusNotFound, "process_not_found"},
		{machine.ErrBusy, http.StatusTooManyRequests, "too_much_at_once"},
		{machine.ErrExhausted, http.StatusConflict, "sandbox_exhausted"},
		{machine.ErrLost, http.StatusBadGateway, "sandbox_lost"},
		{machine.ErrBroken, http.StatusBadGateway, "sandbox_broken"},
		{machine.ErrClosed, http.StatusServiceUnavailable, "draining"},
		{machine.ErrUnsupported, http.StatusNotImplemented, "not_supported"},
		{machine.ErrOutside, http.StatusForbidden, "path_outside"},
		{machine.ErrReadOnly, http.StatusForbidden, "path_read_only"},
		{machine.ErrSymlink, http.StatusForbidden, "path_is_link"},
		{machine.ErrMount, http.StatusForbidden, "path_is_mount"},
		{machine.ErrHardLink, http.StatusForbidden, "path_is_link"},
		{machine.ErrFIFO, http.StatusForbidden, "path_is_special"},
		{machine.ErrSocket, http.StatusForbidden, "path_is_special"},
		{machine.ErrDevice, http.StatusForbidden, "path_is_special"},
		{machine.ErrIsDir, http.StatusConflict, "path_is_directory"},
		{machine.ErrNotDir, http.StatusConflict, "path_not_directory"},
		{machine.ErrNotEmpty, http.StatusConflict, "directory_not_empty"},
		{machine.ErrChanged, http.StatusPreconditionFailed, "file_changed"},
		{machine.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
		{machine.ErrNoSpace, http.StatusInsufficientStorage, "no_space"},
		{machine.ErrTimeout, http.StatusGatewayTimeout, "timeout"},
		{fs.ErrNotExist, http.StatusNotFound, "file_not_found"},
		{fs.ErrExist, http.StatusConflict, "file_exists"},
		{fs.ErrPermission, http.StatusForbidden, "permission_denied"},
		{sandbox.ErrUnsupported, http.StatusNotImplemented, "not_supported"},
		{sandbox.ErrNotFound, http.StatusNotFound, "sandbox_not_found"},
		{sandbox.ErrBusy, http.StatusConflict, "sandbox_busy"},
		{sandbox.ErrDenied, http.StatusForbidden, "denied_by_policy"},
		{context.Canceled, statusClientClosed, "cancelled"},
		{context.DeadlineExceeded, http.StatusGatewayTimeout, "timeout"},
	}
}

// statusClientClosed is the status of a request whose caller closed the connection.
// It appears in logs and metrics only.
const statusClientClosed = 499

type errorKind struct {
	err    error
	status int
	code   string
}

// problem returns the problem that answers an error.
func (c *call) problem(err error) *api.Problem {
	p := c.classify(err)
	p.Type, p.RequestID = cmp.Or(p.Type, "about:blank"), c.id
	p.Title = cmp.Or(p.Title, http.StatusText(p.Status), "Client left")
	if c.isBound() {
		p.Detail, p.Hint = publicerr.Text(p.Detail), publicerr.Text(p.Hint)
	}
	return p
}

func (c *call) classify(err error) *api.Problem {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		own := *p
		return &own
	}
	for _, k := range errorKinds() {
		if errors.Is(err, k.err) {
			return &api.Problem{Status: k.status, Code: k.code, Detail: err.Error(), Hint: errhint.Of(err)}
		}
	}
	if _, ok := errors.AsType[*gate.ConflictError](err); ok {
		return &api.Problem{Status: http.StatusConflict, Code: "sync_conflict", Detail: err.Error(), Hint: errhint.Of(err)}
	}
	if _, ok := errors.AsType[*take.Refused](err); ok {
		return &api.Problem{Status: http.StatusConflict, Code: "sync_not_allowed", Detail: err.Error(), Hint: errhint.Of(err)}
	}
	if wrong, ok := errors.AsType[*sandboxes.InvalidError](err); ok {
		return &api.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid_request", Detail: "the request is not valid", Errors: []api.FieldError{{Pointer: wrong.Pointer, Detail: wrong.Detail}}}
	}
	if f, ok := errors.AsType[*run.Failure](err); ok {
		return &api.Problem{Status: failureStatus(f), Code: f.Code, Detail: f.Message, Hint: errhint.Of(err)}
	}
	return c.internalProblem(err)
}

// failureStatus returns the status for a run that was not started.
func failureStatus(f *run.Failure) int {
	if f.Code == "disk_full" {
		return http.StatusInsufficientStorage
	}
	return http.StatusUnprocessableEntity
}

// internalProblem answers an unexpected error. Callers bound to an account do not
// get its text.
func (c *call) internalProblem(err error) *api.Problem {
	if store.IsTransient(err) {
		return &api.Problem{Status: http.StatusServiceUnavailable, Code: "storage", Detail: "the gateway's disk or database does not answer", Hint: "try again later"}
	}
	if c.isBound() {
		return &api.Problem{Status: http.StatusInternalServerError, Code: "internal", Detail: "the gateway could not do this", Hint: "ask its operator, with the request's id"}
	}
	if _, ok := errors.AsType[config.Problems](err); ok || errhint.Of(err) != "" {
		return &api.Problem{Status: http.StatusUnprocessableEntity, Code: "not_possible", Detail: err.Error(), Hint: errhint.Of(err)}
	}
	return &api.Problem{Status: http.StatusInternalServerError, Code: "internal", Detail: err.Error()}
}

func (c *call) refuse(p *api.Problem) error {
	c.w.Header().Set("Content-Type", api.ProblemType)
	c.w.WriteHeader(p.Status)
	return json.MarshalWrite(c.w, p)
}

// invalid is a request with wrong fields.
func invalid(errs ...api.FieldError) error {
	return &api.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid_request", Detail: "the request is not valid", Errors: errs}
}

func refused(code, detail, hint string) error {
	return &api.Problem{Status: http.StatusForbidden, Code: code, Detail: detail, Hint: hint}
}
