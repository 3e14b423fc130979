package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/access"
)

// call is one request being served.
type call struct {
	*Server
	route  *route
	w      *statusRecorder
	r      *http.Request
	caller *access.Caller // nil on routes without authentication
	id     string
}

func (c *call) ctx() context.Context { return c.r.Context() }

// path returns a variable of the route's path.
func (c *call) path(name string) string { return c.r.PathValue(name) }

// statusRecorder records the status of the answer.
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

// Unwrap lets http.ResponseController reach the writer.
func (w *statusRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// setWriteTimeout bounds later writes of the connection; writers without deadlines
// are not bounded.
func (c *call) setWriteTimeout(d time.Duration) {
	_ = http.NewResponseController(c.w).SetWriteDeadline(deadline(d))
}

// deadline returns the time d from now, or no deadline if d is zero.
func deadline(d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}
