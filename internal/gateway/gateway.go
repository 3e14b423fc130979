// Package gateway is the listener of the long-running service: the addresses and
// the socket, TLS, the number of connections, and the checks that every request
// passes before a protocol handles it. Package rest answers requests, package ws
// serves OpenClaw's WebSocket protocol, package access authenticates callers.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/portproxy"
	"github.com/atoll-run/atoll/internal/membudget"
)

// Options configure a Server.
type Options struct {
	Listen   []string // HOST:PORT each
	Socket   string   // path of the owner's socket; "" for none
	TLS      Certificate
	Trusted  []string     // networks (CIDR or interface) that plain connections may cross
	Origins  []string     // browsers from here may connect, beside those of the gateway's own pages
	Hosts    []string     // names that requests may be for, beside addresses, localhost and the certificate's
	Upgrades []Route      // WebSocket connections, by path
	REST     http.Handler // every other request
	// Ports passes requests on that are for a port of a sandbox; nil if there is none.
	Ports  *portproxy.Proxy
	Access *access.Access // authenticates routes with a scope; nil if there are none
	Logger *slog.Logger   // nil discards
	Limits Limits
}

// Limits bound what unauthenticated peers can use; 0 is the default.
type Limits struct {
	Connections int            // at once
	PerAddress  int            // of one address that is not this machine's
	Header      time.Duration  // until the header of a request is complete
	Body        membudget.Pace // how slowly a body may arrive
	Idle        time.Duration  // between two requests
}

// The defaults of Limits.
const (
	DefaultConnections = 8192
	DefaultPerAddress  = 512
	defaultHeader      = 10 * time.Second
	defaultIdle        = 2 * time.Minute
	maxHeader          = 32 << 10
)

func (l *Limits) fill() {
	l.Body = l.Body.OrDefault()
	for _, n := range []struct {
		number  *int
		builtin int
	}{{&l.Connections, DefaultConnections}, {&l.PerAddress, DefaultPerAddress}} {
		if *n.number == 0 {
			*n.number = n.builtin
		}
	}
	for _, d := range []struct {
		time    *time.Duration
		builtin time.Duration
	}{{&l.Header, defaultHeader}, {&l.Idle, defaultIdle}} {
		if *d.time == 0 {
			*d.time = d.builtin
		}
	}
}

// Server accepts connections and passes requests to the handlers.
type Server struct {
	options   Options
	http      *http.Server
	routes    *routeTable
	trusted   networks
	listeners []net.Listener
	conns     connCounter
	served    sync.WaitGroup
	failed    chan error
	cancel    context.CancelFunc // ends the contexts of all requests

	mu          sync.RWMutex // what a reload changes
	certificate *loadedCertificate
	origins     map[string]bool
	hosts       map[string]bool
	draining    atomic.Bool
}

// Open checks the listen addresses and opens the listeners.
func Open(ctx context.Context, o Options) (*Server, error) {
	o.Limits.fill()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{options: o, failed: make(chan error, 1), conns: connCounter{max: o.Limits.Connections, maxPerKey: o.Limits.PerAddress, byKey: map[string]int{}}}
	if err := s.Reload(Reloadable{TLS: o.TLS, Origins: o.Origins, Hosts: o.Hosts}); err != nil {
		return nil, err
	}
	var err error
	if s.routes, err = newRouteTable(s, o.Upgrades); err != nil {
		return nil, err
	}
	if s.trusted, err = parseNetworks(o.Trusted); err != nil {
		return nil, err
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), ConnContext: peerContext, ReadHeaderTimeout: o.Limits.Header, IdleTimeout: o.Limits.Idle,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return base },
	}
	if err := s.listen(ctx); err != nil {
		s.cancel()
		s.closeListeners()
		return nil, err
	}
	return s, nil
}

// Start serves every listener.
func (s *Server) Start() {
	for _, l := range s.listeners {
		s.served.Go(func() {
			if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				select {
				case s.failed <- err:
				default:
				}
			}
		})
	}
}

// Failed returns a channel that receives the error of a listener that stopped.
func (s *Server) Failed() <-chan error { return s.failed }

// Addresses returns the addresses of the listeners, with the path of the socket.
func (s *Server) Addresses() (all []string) {
	for _, l := range s.listeners {
		all = append(all, l.Addr().String())
	}
	return all
}

// Connections returns the number of open connections.
func (s *Server) Connections() int { return s.conns.count() }

// Accepted returns the number of connections that were ever open.
func (s *Server) Accepted() int { return s.conns.countEver() }

// Drain accepts no more connections or requests; requests under way continue.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.http.SetKeepAlivesEnabled(false)
	s.closeListeners()
}

// Close waits for requests under way until the context ends, then closes their
// connections, and ends the contexts of upgraded ones.
func (s *Server) Close(ctx context.Context) error {
	s.draining.Store(true)
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	s.cancel()
	s.closeListeners()
	s.served.Wait()
	return err
}

func (s *Server) closeListeners() {
	for _, l := range s.listeners {
		_ = l.Close()
	}
}

// serve checks a request and passes it to the WebSocket or the REST handler.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if t := s.portOf(r); t != nil {
		s.options.Ports.Serve(w, r, t)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if refusal := s.check(r); refusal != nil {
		s.refuse(w, r, refusal)
		return
	}
	if isUpgrade(r) {
		s.routes.serve(w, r)
		return
	}
	PaceBody(w, r, s.options.Limits.Body)
	s.options.REST.ServeHTTP(w, r)
}

// portOf returns the port of a sandbox that a request is for, by its host name; nil if
// it is for the gateway.
func (s *Server) portOf(r *http.Request) *portproxy.Target {
	if s.options.Ports == nil || s.draining.Load() {
		return nil
	}
	t := portproxy.Parse(hostname(r.Host))
	if t == nil || access.FromContext(r.Context()) == nil && !s.isOwnHost(t.Gateway) {
		return nil
	}
	return t
}

// refuse logs a refusal and answers with it.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, no *refusal) {
	s.options.Logger.WarnContext(r.Context(), "request refused", "reason", no.reason, "from", r.RemoteAddr, "method", r.Method, "path", r.URL.Path)
	no.write(w)
}

func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// peerContext gives requests that arrive on the owner's socket their caller. The
// peer's user id was checked when the connection was accepted.
func peerContext(ctx context.Context, c net.Conn) context.Context {
	if _, ok := c.(*ownerConn); ok {
		return access.WithCaller(ctx, access.Socket())
	}
	return ctx
}
