package envd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/membudget"
)

// The codes of Connect that are used.
const (
	canceled           = "canceled"
	invalidArgument    = "invalid_argument"
	deadlineExceeded   = "deadline_exceeded"
	notFound           = "not_found"
	alreadyExists      = "already_exists"
	permissionDenied   = "permission_denied"
	resourceExhausted  = "resource_exhausted"
	failedPrecondition = "failed_precondition"
	unimplemented      = "unimplemented"
	internal           = "internal"
	unavailable        = "unavailable"
	unauthenticated    = "unauthenticated"
)

// statuses are those of HTTP, by code.
var statuses = map[string]int{
	canceled: 499, invalidArgument: http.StatusBadRequest, deadlineExceeded: http.StatusGatewayTimeout, notFound: http.StatusNotFound, alreadyExists: http.StatusConflict,
	permissionDenied: http.StatusForbidden, resourceExhausted: http.StatusTooManyRequests, failedPrecondition: http.StatusBadRequest, unimplemented: http.StatusNotImplemented,
	internal: http.StatusInternalServerError, unavailable: http.StatusServiceUnavailable, unauthenticated: http.StatusUnauthorized,
}

// fault is an error as Connect writes it.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (f *fault) Error() string { return f.Message }

// kinds map errors to codes; the first that matches counts.
var kinds = []struct {
	err  error
	code string
}{
	{errUser, unauthenticated},
	{sandboxes.ErrNotFound, unavailable},
	{sandboxes.ErrStopped, unavailable},
	{sandboxes.ErrEnding, unavailable},
	{machine.ErrNoProcess, notFound},
	{machine.ErrBusy, resourceExhausted},
	{machine.ErrExhausted, resourceExhausted},
	{machine.ErrLost, unavailable},
	{machine.ErrBroken, unavailable},
	{machine.ErrClosed, unavailable},
	{machine.ErrUnsupported, unimplemented},
	{machine.ErrOutside, permissionDenied},
	{machine.ErrReadOnly, permissionDenied},
	{machine.ErrSymlink, failedPrecondition},
	{machine.ErrMount, permissionDenied},
	{machine.ErrHardLink, permissionDenied},
	{machine.ErrFIFO, invalidArgument},
	{machine.ErrSocket, invalidArgument},
	{machine.ErrDevice, invalidArgument},
	{machine.ErrIsDir, invalidArgument},
	{machine.ErrNotDir, invalidArgument},
	{machine.ErrNotEmpty, failedPrecondition},
	{machine.ErrTooLarge, resourceExhausted},
	{machine.ErrNoSpace, resourceExhausted},
	{machine.ErrTimeout, deadlineExceeded},
	{machine.ErrInvalid, invalidArgument},
	{membudget.ErrHolder, resourceExhausted},
	{membudget.ErrTotal, resourceExhausted},
	{fs.ErrNotExist, notFound},
	{fs.ErrExist, alreadyExists},
	{fs.ErrPermission, permissionDenied},
	{os.ErrDeadlineExceeded, deadlineExceeded},
	{context.DeadlineExceeded, deadlineExceeded},
	{context.Canceled, canceled},
	{io.ErrUnexpectedEOF, invalidArgument},
	{io.EOF, invalidArgument},
}

// faultOf returns what answers an error.
func faultOf(b *box, err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if wrong, ok := errors.AsType[*sandboxes.InvalidError](err); ok {
		return &fault{invalidArgument, wrong.Error()}
	}
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &fault{resourceExhausted, fmt.Sprintf("the body has more than %d bytes", over.Limit)}
	}
	if b != nil {
		err = b.Explain(err)
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return &fault{k.code, err.Error()}
		}
	}
	return &fault{internal, "the gateway could not do this: ask its operator"}
}

// answerFault answers a call with one message.
func answerFault(w http.ResponseWriter, f *fault) {
	w.Header().Set("Content-Type", unaryType)
	w.WriteHeader(statuses[f.Code])
	_ = json.MarshalWrite(w, f, jsontext.AllowInvalidUTF8(true)) // the client may be gone
}

// refuse answers a request that is no call, as E2B's program and the way to it do.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, map[string]any{"code": status, "message": message}, jsontext.AllowInvalidUTF8(true)) // the client may be gone
}
