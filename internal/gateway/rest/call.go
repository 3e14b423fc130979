package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/gateway/access"
)

// call is one request on its way.
type call struct {
	*Server
	route  *route
	w      *statusRecorder
	r      *http.Request
	caller *access.Caller // nil on routes that are open to everybody
	id     string
}

func (c *call) ctx() context.Context { return c.r.Context() }

// path is a variable of the route's path.
func (c *call) path(name string) string { return c.r.PathValue(name) }

// answer sends what was asked for.
func (c *call) answer(status int, v any) error {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	// What programs inside sandboxes wrote need not be text.
	return json.MarshalWrite(c.w, v, jsontext.AllowInvalidUTF8(true), json.Deterministic(true))
}

// statusRecorder remembers what was answered.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (w *statusRecorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusRecorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// setWriteTimeout bounds how long writes of the connection may take from now on; where there
// is no connection, there is nothing to bound.
func (c *call) setWriteTimeout(d time.Duration) {
	_ = http.NewResponseController(c.w).SetWriteDeadline(deadline(d))
}

// deadline is so far from now; never if d is zero.
func deadline(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}
