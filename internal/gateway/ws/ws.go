// Package ws speaks OpenClaw's gateway protocol, versions 3 and 4, with programs
// that connect by WebSocket: their handshake, the methods that they call, and the
// events that they are told.
//
// What a connection sees is decided by its token alone. Upstream tells every
// client everything and asks it to filter; here an event has an audience, the
// connections whose token may see its account, and nobody else learns that it
// happened: sequence numbers and versions of state are counted for each
// connection and account, not for the gateway.
package ws

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/metrics"
)

// Options are what a Server is made of.
type Options struct {
	Sessions  *session.Service
	Access    *access.Access
	Catalogue Catalogue
	// Healthy says what is wrong with the service; nil is always well.
	Healthy func(context.Context) error
	Version string            // of this program, told to clients
	Origins []string          // browsers from here may connect
	Metrics *metrics.Registry // nil counts for nobody
	Logger  *slog.Logger      // nil discards
	Inbound *membudget.Budget // memory of messages that arrive; nil is access.NewInbound
	Limits  Limits
}

// Catalogue is what there is to choose from.
type Catalogue interface {
	Agents(ctx context.Context) ([]Agent, error) // the default one first
	Models(ctx context.Context) ([]Model, error)
}

// Agent is one that tasks can be given to.
type Agent struct {
	ID, Name, Description string
	Model                 string // provider/id
}

// Model is one that sessions can be set to.
type Model struct {
	ID, Name, Provider string
	ContextWindow      int64
	Reasoning          bool
}

// Server is the http.Handler of the protocol's connections.
type Server struct {
	Options
	hub     *hub
	meters  *meters
	buffers sync.Pool // of what connections write
	methods map[string]*method
	began   time.Time
	waiters chan chan struct{} // until what has happened was told

	ctx             context.Context
	stop            context.CancelFunc
	work            sync.WaitGroup // goroutines of ours
	unauthenticated atomic.Int64   // connections that have not said hello
	pending         atomic.Int64   // tasks whose end is to be answered
}

// New returns a server that is at work until Close.
func New(o Options) *Server {
	o.Limits = o.Limits.withDefaults()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Healthy == nil {
		o.Healthy = func(context.Context) error { return nil }
	}
	o.Inbound = cmp.Or(o.Inbound, access.NewInbound())
	s := &Server{Options: o, began: time.Now(), methods: table(), meters: newMeters(cmp.Or(o.Metrics, &metrics.Registry{})), waiters: make(chan chan struct{})}
	s.hub = newHub(s)
	s.ctx, s.stop = context.WithCancel(context.Background())
	first := s.subscribe() // before the first client can cause an event
	s.work.Go(func() { s.follow(first) })
	s.work.Go(s.tick)
	return s
}

// ServeHTTP takes a connection and stays with it until it ends.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.unauthenticated.Add(1) > int64(s.Limits.Unauthenticated) || s.ctx.Err() != nil {
		s.unauthenticated.Add(-1)
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	greet := sync.OnceFunc(func() { s.unauthenticated.Add(-1) })
	defer greet()
	s.serve(w, r, greet)
}

// Announce tells every client that the gateway is about to end, and takes in nobody
// any more. What is under way goes on, and is told.
func (s *Server) Announce(reason string) { s.hub.announceShutdown(reason) }

// Shutdown closes the connections when everything was told that there is to tell, or
// when the context ends.
func (s *Server) Shutdown(ctx context.Context) {
	s.waitCaughtUp(ctx)
	s.answered(ctx)
	s.hub.closeAll()
	s.hub.waitEmpty(ctx)
	s.Close()
}

// answered waits until the tasks that are over were answered for. Those that wait for
// the next process are not.
func (s *Server) answered(ctx context.Context) {
	for s.pending.Load() > int64(s.Sessions.Stats().Waiting) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollInterval):
		}
	}
}

// pollInterval is how long it is waited before something is looked at again.
const pollInterval = 5 * time.Millisecond

// Close ends every connection at once.
func (s *Server) Close() {
	s.stop()
	s.hub.dropAll()
	s.work.Wait()
}

// Connections is how many clients are known and connected.
func (s *Server) Connections() int { return s.hub.count() }
