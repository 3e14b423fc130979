package ws

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/store"
)

func invalid(message string) *protocol.Error {
	return &protocol.Error{Code: protocol.CodeInvalidRequest, Message: message}
}

func unavailable(message string) *protocol.Error {
	return &protocol.Error{Code: protocol.CodeUnavailable, Message: message}
}

// with adds details, which must be encodable as JSON.
func with(e *protocol.Error, details any) *protocol.Error {
	e.Details, _ = json.Marshal(details)
	return e
}

// explain converts an error to a protocol error.
func (c *conn) explain(method string, err error) *protocol.Error {
	e := errors.Join(err) // never nil here
	switch {
	case errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrKeyReused), errors.Is(err, session.ErrInvalid):
		return invalid(hinted(e))
	case errors.Is(err, session.ErrBusy), errors.Is(err, access.ErrTooMany), errors.Is(err, access.ErrQuota):
		e := unavailable(err.Error())
		e.Retryable, e.RetryAfterMs = true, 1000
		return e
	case errors.Is(err, store.ErrFull), store.IsTransient(err):
		c.server.Logger.ErrorContext(c.ctx, "gateway method failed", "method", method, "connection", c.id, "token", c.caller.Token, "error", err)
		e := unavailable("the gateway's disk is full or does not answer")
		e.Retryable, e.RetryAfterMs = true, 5000
		return e
	case errors.Is(err, session.ErrDraining), errors.Is(err, context.Canceled):
		e := unavailable(session.ErrDraining.Error())
		e.Retryable = true
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return &protocol.Error{Code: protocol.CodeAgentTimeout, Message: "it took too long"}
	}
	c.server.Logger.ErrorContext(c.ctx, "gateway method failed", "method", method, "connection", c.id, "token", c.caller.Token, "error", err)
	return unavailable("internal error, see the gateway's log")
}

func hinted(err error) string {
	if hint := errhint.Of(err); hint != "" {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
}
