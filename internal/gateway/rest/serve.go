package rest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/logid"
)

// RequestID is the header with the id of a request.
const RequestID = "X-Request-Id"

var saneID = lazyregexp.New(`^[A-Za-z0-9._-]{1,64}$`)

// ServeHTTP serves a request by the route table.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// serve authenticates a request, limits it and calls its route.
func (s *Server) serve(route *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := s.newCall(route, w, r)
		defer c.finish()
		if err := c.admit(); err != nil {
			c.fail(err)
			return
		}
		if err := route.serve(c); err != nil {
			c.fail(err)
		}
	})
}

func (s *Server) newCall(route *route, w http.ResponseWriter, r *http.Request) *call {
	c := &call{Server: s, route: route, w: &statusRecorder{ResponseWriter: w}, r: r, id: r.Header.Get(RequestID)}
	if !saneID.MatchString(c.id) {
		c.id = "req-" + strings.ToLower(rand.Text())
	}
	c.r = r.WithContext(logid.With(r.Context(), "request", c.id))
	h := w.Header()
	h.Set(RequestID, c.id)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	return c
}

// finish counts the request, and answers for a handler that panicked: one request
// must not end the gateway.
func (c *call) finish() {
	if broken := recover(); broken != nil {
		if broken == http.ErrAbortHandler { //nolint:errorlint // a value of panic
			panic(broken)
		}
		c.fail(fmt.Errorf("broken: %v\n%s", broken, debug.Stack()))
	}
	c.counts.With(c.route.path, strconv.Itoa(c.w.status)).Inc()
}

// admit authenticates the caller and checks its scope and rate.
func (c *call) admit() error {
	if c.route.scope == "" {
		return nil
	}
	caller, err := c.Identify(c.r)
	if err != nil {
		return err
	}
	if !caller.May(c.route.scope) {
		return fmt.Errorf("%w: it needs the scope %s", access.ErrScope, c.route.scope)
	}
	c.caller = caller
	if c.Limits == nil {
		return nil
	}
	return c.Limits.Admit(caller)
}

// notFound answers unknown paths with 404 and unknown methods with 405.
func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	c := s.newCall(&route{path: "none"}, w, r)
	defer c.finish()
	var allowed []string
	for i := range s.table {
		as := r.Clone(r.Context())
		as.Method = s.table[i].method
		if _, pattern := s.mux.Handler(as); pattern == s.table[i].pattern() {
			allowed = append(allowed, s.table[i].method)
		}
	}
	if len(allowed) == 0 {
		c.fail(&api.Problem{Status: http.StatusNotFound, Code: "no_such_route", Detail: "there is nothing at this path", Hint: "/openapi.json lists what there is"})
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	c.fail(&api.Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Detail: "this path takes " + strings.Join(allowed, ", ")})
}

// fail answers with a problem, unless an answer was begun.
func (c *call) fail(err error) {
	if c.w.status != 0 {
		if !errors.Is(err, context.Canceled) {
			c.Logger.DebugContext(c.ctx(), "an answer was cut short", "request", c.id, "error", err)
		}
		return
	}
	p := c.problem(err)
	if p.Status >= http.StatusInternalServerError {
		c.Logger.ErrorContext(c.ctx(), "request failed", "request", c.id, "route", c.route.path, "status", p.Status, "error", err)
	}
	switch p.Status {
	case http.StatusUnauthorized:
		c.w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
		if c.w.Header().Get("Retry-After") == "" {
			c.w.Header().Set("Retry-After", "5")
		}
	}
	_ = c.refuse(p) // the caller may be gone
}
