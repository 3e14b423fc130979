package e2b

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/publicerr"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/store"
)

// fault is an error as E2B's clients read it: the code is the status.
type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (f *fault) Error() string { return f.Message }

func badField(field, format string, args ...any) error {
	return &fault{http.StatusBadRequest, field + ": " + fmt.Sprintf(format, args...)}
}

// kinds map errors to statuses; the first that matches counts.
var kinds = []struct {
	err    error
	status int
}{
	{access.ErrDenied, http.StatusUnauthorized},
	{access.ErrScope, http.StatusForbidden},
	{access.ErrTooMany, http.StatusTooManyRequests},
	{access.ErrQuota, http.StatusTooManyRequests},
	{provide.ErrQuota, http.StatusTooManyRequests},
	{membudget.ErrHolder, http.StatusTooManyRequests},
	{membudget.ErrTotal, http.StatusServiceUnavailable},
	{store.ErrFull, http.StatusInsufficientStorage},
	{sandboxes.ErrNotFound, http.StatusNotFound},
	{sandboxes.ErrNoTemplate, http.StatusNotFound},
	{sandboxes.ErrTemplateExists, http.StatusConflict},
	{sandboxes.ErrEgress, http.StatusForbidden},
	{sandboxes.ErrLimit, http.StatusForbidden},
	{sandboxes.ErrEnding, http.StatusNotFound},
	{sandboxes.ErrStopped, http.StatusConflict},
	{sandboxes.ErrMemory, http.StatusBadRequest},
	{sandboxes.ErrProgram, http.StatusServiceUnavailable},
	{sandbox.ErrUnsupported, http.StatusNotImplemented},
	{sandbox.ErrDenied, http.StatusBadRequest},
}

// faultOf returns what answers an error. Callers who are bound to an account see no path of
// the host, and nothing of what is unexpected.
func (c *call) faultOf(err error) *fault {
	f, ok := errors.AsType[*fault](err)
	if !ok {
		f = c.classify(err)
	}
	if c.caller != nil && c.caller.Account != "" {
		f = &fault{f.Code, publicerr.Text(f.Message)}
	}
	return f
}

func (c *call) classify(err error) *fault {
	if wrong, ok := errors.AsType[*sandboxes.InvalidError](err); ok {
		return &fault{http.StatusBadRequest, fieldOf(wrong.Pointer) + ": " + wrong.Detail}
	}
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		c.w.Header().Set("Connection", "close")
		return &fault{http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", over.Limit)}
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return &fault{k.status, withHint(err)}
		}
	}
	c.Logger.ErrorContext(c.ctx(), "a request of E2B's surface failed", "method", c.r.Method, "path", c.r.URL.Path, "error", err)
	if c.caller == nil || c.caller.Account != "" {
		return &fault{http.StatusInternalServerError, "the gateway could not do this: ask its operator"}
	}
	return &fault{http.StatusInternalServerError, withHint(err)}
}

// fields are E2B's names of what requests to package sandboxes call otherwise.
var fields = map[string]string{"/timeoutSeconds": "timeout", "/env": "envVars", "/egress/allow": "network.allowOut", "/template": "templateID", "/image": "templateID", "/name": "name"}

func fieldOf(pointer string) string {
	for from, to := range fields {
		if rest, ok := strings.CutPrefix(pointer, from); ok {
			return to + strings.ReplaceAll(rest, "/", ".")
		}
	}
	return strings.ReplaceAll(strings.Trim(pointer, "/"), "/", ".")
}

func withHint(err error) string {
	if hint := errhint.Of(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}

func (c *call) fail(err error) { refuse(c.w, c.faultOf(err)) }

// refuse answers with a fault.
func refuse(w http.ResponseWriter, f *fault) {
	switch f.Code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	}
	_ = answer(w, f.Code, f) // the caller may be gone
}

// answer writes a JSON answer.
func answer(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	return json.MarshalWrite(w, v, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
}

func (c *call) answer(status int, v any) error { return answer(c.w, status, v) }

// done answers that there is nothing to say.
func (c *call) done() error {
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// read decodes the body of a request. A member that is not known is an error that names
// it; no body is an empty one.
func (c *call) read(v any) error {
	share := membudget.Share{Budget: c.Inbound, Holder: c.caller.Token, MinBuffer: 16 << 10, MaxBuffer: maxBody + 1}
	defer share.Free()
	body, err := membudget.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody), &share)
	if err != nil || len(body) == 0 {
		return err
	}
	err = json.Unmarshal(body, v, json.RejectUnknownMembers(true))
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok && wrong.JSONPointer != "" {
		return badField(fieldOf(string(wrong.JSONPointer)), "is not known here, or has another type")
	}
	if err != nil {
		return &fault{http.StatusBadRequest, "the body is not JSON"}
	}
	return nil
}
