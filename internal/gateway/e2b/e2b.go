// Package e2b serves the programs that use the SDKs of E2B: its control plane in E2B's
// words, over the sandboxes of package sandboxes, and what is for a sandbox itself, which
// package envd and the port proxy serve.
package e2b

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/e2b/envd"
	"github.com/atoll-run/atoll/internal/gateway/portproxy"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Path is where the gateway serves E2B's clients: both their URLs are the gateway's with
// this path.
const Path = "/e2b"

// The headers with which clients say which port of which sandbox a request is for.
const (
	sandboxHeader = "E2b-Sandbox-Id"
	portHeader    = "E2b-Sandbox-Port"
)

// maxBody bounds the body of a request of the control plane.
const maxBody = 1 << 20

// Options configure a Server.
type Options struct {
	Made   *sandboxes.Service
	Access *access.Access
	Ports  *portproxy.Proxy
	// Templates returns the images of templates by name.
	Templates func() map[string]string
	// States returns what the sandboxes of the installation do now, by name.
	States  func(context.Context) (map[string]sandbox.State, error)
	Inbound *membudget.Budget
	Logger  *slog.Logger
}

// Server serves E2B's clients.
type Server struct {
	Options
	Envd *envd.Server
	mux  *http.ServeMux

	mu      sync.Mutex
	samples map[string]sample // of the CPU time of sandboxes, by id
}

// New returns a server. Close it before its options.
func New(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{Options: o, mux: http.NewServeMux(), samples: map[string]sample{}}
	s.Envd = envd.New(envd.Options{Made: o.Made, Inbound: o.Inbound, Logger: o.Logger})
	for pattern, serve := range routes() {
		s.mux.Handle(pattern, s.handler(serve))
	}
	return s
}

// Close ends what is kept for clients.
func (s *Server) Close() { s.Envd.Close() }

// Serves reports whether a request is for E2B's surface.
func Serves(r *http.Request) bool {
	return r.URL.Path == Path || strings.HasPrefix(r.URL.Path, Path+"/")
}

// ServeHTTP serves a request below Path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.StripPrefix(Path, http.HandlerFunc(s.serve)).ServeHTTP(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(sandboxHeader)
	if id == "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	port, err := strconv.ParseUint(r.Header.Get(portHeader), 10, 16)
	if err != nil || port == 0 {
		refuse(w, &fault{http.StatusBadRequest, "the header " + portHeader + " must be a port"})
		return
	}
	r.Header.Del(sandboxHeader)
	r.Header.Del(portHeader)
	if r.URL.Path == "" {
		r.URL.Path = "/"
	}
	if port == envd.Port {
		s.Envd.ServeSandbox(w, r, id)
		return
	}
	s.Ports.Serve(w, r, &portproxy.Target{ID: id, Port: int(port)})
}

// call is a request of the control plane whose caller is known.
type call struct {
	*Server
	w      http.ResponseWriter
	r      *http.Request
	caller *access.Caller
}

func (c *call) ctx() context.Context { return c.r.Context() }

// handler authenticates a request, serves it and answers an error in E2B's words.
func (s *Server) handler(serve func(*call) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{Server: s, w: w, r: r}
		defer c.recover()
		if err := c.admit(); err != nil {
			w.Header().Set("Connection", "close") // the body need not come
			c.fail(err)
			return
		}
		if err := serve(c); err != nil {
			c.fail(err)
		}
	})
}

// recover answers for a handler that panicked: one request must not end the gateway.
func (c *call) recover() {
	if broken := recover(); broken != nil {
		if broken == http.ErrAbortHandler { //nolint:errorlint // a value of panic
			panic(broken)
		}
		c.fail(fmt.Errorf("broken: %v\n%s", broken, debug.Stack()))
	}
}

// admit finds out who is calling, by the key that clients send or as on other routes, and
// counts the request.
func (c *call) admit() (err error) {
	keys := c.r.Header.Values("X-Api-Key")
	switch {
	case len(keys) > 1:
		return access.ErrDenied
	case len(keys) == 1:
		c.caller, err = c.Access.Authenticate(c.ctx(), access.Remote(c.r), keys[0])
	default:
		c.caller, err = c.Access.Identify(c.r)
	}
	if err != nil {
		return err
	}
	need := access.Run
	if c.r.Method == http.MethodGet {
		need = access.Read
	}
	if !c.caller.May(need) {
		return fmt.Errorf("%w: it needs the role %s", access.ErrScope, need)
	}
	return c.Access.Limiter.Admit(c.caller)
}

// sandbox returns the sandbox of the path, if the caller may see it.
func (c *call) sandbox() (*sandboxes.Record, error) {
	r, err := c.Made.Get(c.ctx(), c.r.PathValue("id"))
	if err == nil && (!c.caller.Sees(r.Account) || r.Phase != sandboxes.Ready || r.Details.AccessToken == "" || r.ID != c.r.PathValue("id")) {
		err = sandboxes.ErrNotFound
	}
	return r, err
}
