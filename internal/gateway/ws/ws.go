// Package ws serves OpenClaw's gateway protocol, versions 3 and 4, over WebSocket:
// the handshake, the methods and the events.
//
// A connection sees what its token allows and nothing else. OpenClaw sends every
// client everything and asks it to filter; here an event goes to the connections
// whose token may see its account. Event numbers and state versions are counted for
// each connection and account, not for the gateway, so that they show nothing of
// other accounts.
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

// Path is where clients of the protocol connect.
const Path = "/"

// Options configure a Server.
type Options struct {
	Sessions  *session.Service
	Access    *access.Access
	Catalogue Catalogue
	// Healthy returns what is wrong with the service; a nil function is always
	// healthy.
	Healthy func(context.Context) error
	Version string            // of this program, sent to clients
	Origins []string          // browsers from here may connect
	Metrics *metrics.Registry // nil makes one
	Logger  *slog.Logger      // nil discards
	Inbound *membudget.Budget // memory of messages that arrive; nil is access.NewInbound
	Limits  Limits
}

// Catalogue lists agents and models.
type Catalogue interface {
	Agents(ctx context.Context) ([]Agent, error) // the default one first
	Models(ctx context.Context) ([]Model, error)
}

// Agent is an agent that tasks can be given to.
type Agent struct {
	ID, Name, Description string
	Model                 string // provider/id
}

// Model is a model that sessions can be set to.
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
	buffers sync.Pool // for WriteAll
	methods map[string]*method
	began   time.Time
	waiters chan chan struct{} // calls of waitCaughtUp

	ctx             context.Context
	stop            context.CancelFunc
	work            sync.WaitGroup // goroutines of the server
	unauthenticated atomic.Int64   // connections before authentication
	pending         atomic.Int64   // tasks whose final reply is not sent yet
}

// New returns a server that runs until Close.
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

// ServeHTTP serves one connection until it ends.
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

// Announce sends the shutdown event to every client, and accepts no more
// connections. Tasks under way continue, and their events are sent.
func (s *Server) Announce(reason string) { s.hub.announceShutdown(reason) }

// SyncChange is a decision about what an agent changed in its overlay.
type SyncChange struct {
	Agent, Session string
	Verb           string // approve, reject and so on
	Files          int
}

// SyncChanged sends the event sync.changed to the clients that may see an account.
func (s *Server) SyncChanged(account string, c SyncChange) {
	s.hub.publish(account, []encodedEvent{newEvent("sync.changed", nil, fields{
		"agentId": c.Agent, "sessionKey": c.Session, "verb": c.Verb, "files": c.Files, "ts": time.Now().UnixMilli(),
	})})
}

// Shutdown closes the connections when all replies and events were sent, or when
// the context ends.
func (s *Server) Shutdown(ctx context.Context) {
	s.waitCaughtUp(ctx)
	s.answered(ctx)
	s.hub.closeAll()
	s.hub.waitEmpty(ctx)
	s.Close()
}

// answered waits until the final replies of tasks that are over were sent. Tasks
// left to the next process get none.
func (s *Server) answered(ctx context.Context) {
	for s.pending.Load() > int64(s.Sessions.Stats().Waiting) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollInterval):
		}
	}
}

// pollInterval is the wait between two looks at a condition.
const pollInterval = 5 * time.Millisecond

// Close drops every connection.
func (s *Server) Close() {
	s.stop()
	s.hub.dropAll()
	s.work.Wait()
}

// Connections returns the number of authenticated connections.
func (s *Server) Connections() int { return s.hub.count() }
