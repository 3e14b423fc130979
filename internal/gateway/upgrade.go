package gateway

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/logid"
)

// Route is a path whose requests become WebSocket connections. The server checks
// host, origin and headers of the request, authenticates its caller, counts the
// connection and ends its context with the caller's token; the handler upgrades
// and speaks its protocol.
type Route struct {
	Path    string       // pattern of http.ServeMux without a method; "/" is the root alone
	Scope   access.Scope // that a token needs; "" leaves authentication to the handler's protocol
	Handler http.Handler // reads the caller with access.FromContext
	// Max bounds the open connections of the route, and PerToken those of one
	// token on a route with a scope; 0 is the default.
	Max, PerToken int
}

// The defaults of a Route.
const (
	DefaultRouteConnections = DefaultConnections
	DefaultRoutePerToken    = 32
)

// routeTable passes upgrade requests to routes by their path.
type routeTable struct {
	mux    *http.ServeMux
	access *access.Access
	server *Server
}

// newRouteTable refuses routes that cannot be served as they are described.
func newRouteTable(s *Server, routes []Route) (t *routeTable, err error) {
	t = &routeTable{mux: http.NewServeMux(), access: s.options.Access, server: s}
	defer func() { // http.ServeMux panics on a pattern that is malformed or taken
		if p := recover(); p != nil {
			err = fmt.Errorf("gateway: WebSocket routes: %v", p)
		}
	}()
	for _, r := range routes {
		switch {
		case r.Path != "/" && (!strings.HasPrefix(r.Path, "/") || strings.HasSuffix(r.Path, "/")):
			return nil, fmt.Errorf("gateway: WebSocket route %q is not the path of one resource", r.Path)
		case r.Scope != "" && t.access == nil:
			return nil, fmt.Errorf("gateway: WebSocket route %s needs a scope, and there is nothing to authenticate with", r.Path)
		}
		t.mux.Handle(exactPattern(r.Path), t.handler(r))
	}
	return t, nil
}

// exactPattern returns the pattern of http.ServeMux that matches a path and
// nothing below it.
func exactPattern(path string) string {
	if path == "/" {
		return "/{$}"
	}
	return path
}

// handler serves one route.
func (t *routeTable) handler(r Route) http.Handler {
	if r.Max == 0 {
		r.Max = DefaultRouteConnections
	}
	if r.PerToken == 0 {
		r.PerToken = DefaultRoutePerToken
	}
	open := &connCounter{max: r.Max, maxPerKey: r.PerToken, byKey: map[string]int{}}
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { t.serveRoute(w, q, &r, open) })
}

// serve passes an upgrade request to its route.
func (t *routeTable) serve(w http.ResponseWriter, r *http.Request) {
	if refused := checkUpgrade(r); refused != nil {
		t.server.refuse(w, r, refused)
		return
	}
	clean := path.Clean(r.URL.Path)
	if _, pattern := t.mux.Handler(r); pattern == "" || clean != r.URL.Path && clean+"/" != r.URL.Path {
		t.server.refuse(w, r, &refusal{status: http.StatusNotFound, reason: "no_websocket", detail: "no WebSocket is served at this path"})
		return
	}
	t.mux.ServeHTTP(w, r)
}

// serveRoute authenticates a request, counts its connection and calls the route's
// handler. The handler's context ends with the caller's token.
func (t *routeTable) serveRoute(w http.ResponseWriter, r *http.Request, route *Route, open *connCounter) {
	token, begun := "", time.Now()
	if route.Scope != "" {
		r = r.WithContext(logid.With(r.Context(), "connection", strings.ToLower(rand.Text())))
		caller, refused := t.authenticate(r, route)
		if refused != nil {
			t.server.refuse(w, r, refused)
			return
		}
		token = caller.Token
		ctx, stop := t.access.UntilEnded(access.WithCaller(r.Context(), caller), caller)
		defer stop()
		r = r.WithContext(ctx)
		defer func() {
			t.server.options.Logger.InfoContext(ctx, "connection over", "token", caller.Token, "account", caller.Account, "path", route.Path, "took", time.Since(begun))
		}()
	}
	release, ok := open.reserve(token)
	if !ok {
		w.Header().Set("Retry-After", "5")
		t.server.refuse(w, r, &refusal{status: http.StatusServiceUnavailable, reason: "too_many_connections", detail: "too many WebSocket connections are open at this path"})
		return
	}
	defer release()
	route.Handler.ServeHTTP(w, r)
}

// authenticate returns the caller of a route with a scope, and records the attempt
// of a known caller for the audit log.
func (t *routeTable) authenticate(r *http.Request, route *Route) (*access.Caller, *refusal) {
	caller, err := t.access.Identify(r)
	if err == nil {
		err = t.allow(caller, route.Scope)
		t.access.Audit(r.Context(), access.LogIn{Caller: caller, Path: route.Path, From: access.Remote(r), Denied: err})
	}
	switch {
	case err == nil:
		return caller, nil
	case errors.Is(err, access.ErrTooMany):
		return nil, &refusal{status: http.StatusTooManyRequests, reason: "rate_limited", detail: access.ErrTooMany.Error()}
	case errors.Is(err, access.ErrScope):
		return nil, &refusal{status: http.StatusForbidden, reason: "forbidden", detail: "this needs a token with the scope " + string(route.Scope)}
	case errors.Is(err, access.ErrDenied):
		return nil, &refusal{status: http.StatusUnauthorized, reason: "unauthorized", detail: access.ErrDenied.Error()}
	}
	return nil, &refusal{status: http.StatusServiceUnavailable, reason: "unavailable", detail: "the token cannot be checked now"}
}

// allow checks the scope and the rate of a caller.
func (t *routeTable) allow(c *access.Caller, scope access.Scope) error {
	if !c.May(scope) {
		return access.ErrScope
	}
	return t.access.Limiter.Admit(c)
}

// checkUpgrade refuses a request that is not an opening handshake of RFC 6455.
func checkUpgrade(r *http.Request) *refusal {
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-WebSocket-Key"))
	switch {
	case r.Method != http.MethodGet:
		return &refusal{status: http.StatusMethodNotAllowed, reason: "method_not_allowed", detail: "a WebSocket begins with GET", header: http.Header{"Allow": {http.MethodGet}}}
	case !r.ProtoAtLeast(1, 1) || !hasToken(r.Header["Connection"], "upgrade"):
		return &refusal{status: http.StatusBadRequest, reason: "bad_upgrade", detail: "a WebSocket begins with HTTP/1.1 and the header Connection: Upgrade"}
	case r.Header.Get("Sec-WebSocket-Version") != "13":
		return &refusal{status: http.StatusUpgradeRequired, reason: "websocket_version", detail: "only version 13 of the WebSocket protocol is served", header: http.Header{"Sec-Websocket-Version": {"13"}}}
	case err != nil || len(key) != 16 || len(r.Header["Sec-Websocket-Key"]) != 1:
		return &refusal{status: http.StatusBadRequest, reason: "bad_upgrade", detail: "the header Sec-WebSocket-Key is 16 bytes in base64"}
	}
	return nil
}

// hasToken reports whether a comma-separated header contains a token.
func hasToken(values []string, token string) bool {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}
