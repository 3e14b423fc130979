// Package gateway is the door of the long-running service: where it listens and
// under which conditions, which connections it takes, how many, and what a request
// must look like before either protocol sees it. What is said behind the door
// belongs to ws and rest, who may say it to access.
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
	"github.com/atoll-run/atoll/internal/membudget"
)

// Options are what a Server is made of.
type Options struct {
	Listen  []string // HOST:PORT each
	Socket  string   // path of the owner's socket; "" for none
	TLS     Certificate
	Trusted []string // networks (CIDR or interface) that plain connections may cross
	Origins []string // browsers from here may connect, beside those of the gateway's own pages
	Hosts   []string // names that requests may be for, beside addresses, localhost and the certificate's
	WS      http.Handler
	REST    http.Handler
	Logger  *slog.Logger // nil discards
	Limits  Limits
}

// Limits bound what strangers can take up; 0 is the default.
type Limits struct {
	Connections int            // at once
	PerAddress  int            // of one address that is not this machine's
	Header      time.Duration  // to say what is asked
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

// Server takes connections and hands requests to the protocols.
type Server struct {
	options   Options
	http      *http.Server
	trusted   networks
	listeners []net.Listener
	conns     connCounter
	served    sync.WaitGroup
	failed    chan error

	mu          sync.RWMutex // what a reload changes
	certificate *loadedCertificate
	origins     map[string]bool
	hosts       map[string]bool
	draining    atomic.Bool
}

// Open checks where the gateway is to listen, and listens.
func Open(ctx context.Context, o Options) (*Server, error) {
	o.Limits.fill()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{options: o, failed: make(chan error, 1), conns: connCounter{max: o.Limits.Connections, maxPerAddress: o.Limits.PerAddress, byAddress: map[string]int{}}}
	if err := s.Reload(Reloadable{TLS: o.TLS, Origins: o.Origins, Hosts: o.Hosts}); err != nil {
		return nil, err
	}
	var err error
	if s.trusted, err = parseNetworks(o.Trusted); err != nil {
		return nil, err
	}
	s.http = &http.Server{
		Handler: http.HandlerFunc(s.serve), ConnContext: peerContext, ReadHeaderTimeout: o.Limits.Header, IdleTimeout: o.Limits.Idle,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	if err := s.listen(ctx); err != nil {
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

// Failed tells that a listener gave up.
func (s *Server) Failed() <-chan error { return s.failed }

// Addresses are where the gateway listens, the socket's path too.
func (s *Server) Addresses() (all []string) {
	for _, l := range s.listeners {
		all = append(all, l.Addr().String())
	}
	return all
}

// Connections is how many are open.
func (s *Server) Connections() int { return s.conns.count() }

// Drain takes no more connections or requests; those under way go on.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.http.SetKeepAlivesEnabled(false)
	s.closeListeners()
}

// Close waits for requests under way until the context ends, then cuts them.
func (s *Server) Close(ctx context.Context) error {
	s.draining.Store(true)
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	s.closeListeners()
	s.served.Wait()
	return err
}

func (s *Server) closeListeners() {
	for _, l := range s.listeners {
		_ = l.Close()
	}
}

// serve judges a request and gives it to the protocol that it is for.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if refusal := s.check(r); refusal != nil {
		s.options.Logger.WarnContext(r.Context(), "request refused", "reason", refusal.reason, "from", r.RemoteAddr, "method", r.Method, "path", r.URL.Path)
		refusal.write(w)
		return
	}
	if isUpgrade(r) {
		s.options.WS.ServeHTTP(w, r)
		return
	}
	PaceBody(w, r, s.options.Limits.Body)
	s.options.REST.ServeHTTP(w, r)
}

func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// peerContext marks the connections of the owner's socket: the kernel was asked
// who is on the other end when they were taken.
func peerContext(ctx context.Context, c net.Conn) context.Context {
	if _, ok := c.(*ownerConn); ok {
		return access.WithCaller(ctx, access.Socket())
	}
	return ctx
}
