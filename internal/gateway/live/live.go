// Package live tells pages what happens now, over one WebSocket each: topics with a
// snapshot of their rows, and then what changes. What a topic shows is read once for all
// connections of an account, by the same rules as the HTTP interface. A client that is
// slow gets the newest snapshot in place of what it missed.
package live

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/session"
)

// Path is the path of the WebSocket.
const Path = "/api/v1/live"

// The bounds of connections.
const (
	MaxConnections = 32                // of one token
	MaxTopics      = 64                // of one connection
	maxMessage     = 4 << 10           // bytes of a message of a client
	maxName        = 256               // bytes of a topic
	maxFeeds       = 2000              // topics that are read, of all connections
	maxPage        = 1 << 20           // bytes of events in one message
	burst, rate    = 2 * MaxTopics, 10 // messages of a client at once, and a second
	// LogInTime is how long a page has to send its half of the log-in.
	LogInTime = 5 * time.Second
	sendTime  = 10 * time.Second // until the client has taken a message
	pingEvery = 25 * time.Second
	sendEvery = 20 * time.Millisecond // between two looks at what is to be sent
)

// Row is one row of a topic, as JSON.
type Row struct {
	Key  string
	JSON []byte
}

// Source reads what callers may see, by the rules of the HTTP interface.
type Source interface {
	// Rows returns the rows of a topic.
	Rows(ctx context.Context, c *access.Caller, topic string) ([]Row, error)
	// Run returns a run and its events after a number.
	Run(ctx context.Context, c *access.Caller, id string, after int64) (*api.Run, []api.Event, error)
	// FollowRun signals that a run has new events, until quit is called.
	FollowRun(id string) (signal chan struct{}, quit func())
	// Session returns a session.
	Session(ctx context.Context, c *access.Caller, key string) (*api.Session, error)
	// FollowSessions returns the events of all sessions of a caller.
	FollowSessions(c *access.Caller) *session.Subscription
	// Event converts an event of a session; ok is false for one that is not shown.
	Event(e *session.Event) (event api.Event, ok bool)
	// Problem returns what a caller is told of an error.
	Problem(c *access.Caller, err error) *api.Problem
}

// Options configure a Handler.
type Options struct {
	Source  Source
	Access  *access.Access
	Origins []string // allowed browser origins, besides the request's own host
	Logger  *slog.Logger
	LogIn   time.Duration // 0 is LogInTime
}

// Handler serves the WebSocket.
type Handler struct {
	Options
	ctx  context.Context //nolint:containedctx // feeds outlive the connections that ask for them
	stop context.CancelFunc
	work sync.WaitGroup

	mu    sync.Mutex
	feeds map[feedName]*feed
	conns map[string]int // by token
}

// New returns a handler. Close it before its source.
func New(o Options) *Handler {
	if o.LogIn == 0 {
		o.LogIn = LogInTime
	}
	h := &Handler{Options: o, feeds: map[feedName]*feed{}, conns: map[string]int{}}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Close ends all connections.
func (h *Handler) Close() {
	h.mu.Lock()
	h.stop()
	h.mu.Unlock()
	h.work.Wait()
}

// enter counts a connection of a token; ok is false if there are too many and after
// Close, otherwise leave must be called.
func (h *Handler) enter(token string) (leave func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() != nil || h.conns[token] >= MaxConnections {
		return nil, false
	}
	h.conns[token]++
	h.work.Add(1)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.conns[token]--; h.conns[token] == 0 {
			delete(h.conns, token)
		}
		h.work.Done()
	}, true
}

// ServeHTTP finds out who is calling and serves one connection.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller, err := h.identify(r)
	if err != nil {
		refuse(w, h.Source.Problem(nil, err))
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: h.Origins, Subprotocols: []string{access.Subprotocol}})
	if err != nil {
		return // it has answered
	}
	defer ws.CloseNow() //nolint:errcheck // it may be closed already
	ws.SetReadLimit(maxMessage)
	if caller == nil {
		if caller, err = h.logIn(r, ws); err != nil {
			_ = ws.Close(websocket.StatusPolicyViolation, "log in first")
			return
		}
	}
	leave, ok := h.enter(caller.Token)
	if !ok {
		_ = ws.Close(websocket.StatusTryAgainLater, "too many connections")
		return
	}
	defer leave()
	h.serve(r, ws, caller)
}

// serve serves a connection until its client, its token or the gateway ends.
func (h *Handler) serve(r *http.Request, ws *websocket.Conn, caller *access.Caller) {
	ctx, release := h.Access.UntilEnded(r.Context(), caller)
	defer release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(context.Canceled) })()
	begun := time.Now()
	h.Access.Audit(ctx, access.LogIn{Caller: caller, Path: Path, From: access.Remote(r)})
	c := newConn(h, ws, caller)
	defer c.close()
	written := make(chan struct{})
	go func() { defer close(written); cancel(c.write(ctx)) }()
	cancel(c.read(ctx))
	<-written
	_ = ws.Close(websocket.StatusGoingAway, "the connection was closed")
	h.Logger.InfoContext(ctx, "connection over", "token", caller.Token, "account", caller.Account, "path", Path, "took", time.Since(begun))
}
