package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// MaxHTTPBody bounds the body of one request.
	MaxHTTPBody = maxMessage
	// MaxSessions bounds the sessions that are open at once.
	MaxSessions = 256
	// MaxSessionsPerClient bounds those of one client.
	MaxSessionsPerClient = 16
	// httpIdle ends a session without requests.
	httpIdle = 10 * time.Minute

	sessionHeader = "Mcp-Session-Id"
)

// Errors of Handler.ServeClient, before anything was answered.
var (
	ErrTooManySessions = errors.New("too many MCP sessions are open")
	ErrNoSession       = errors.New("no MCP session of this token has this id")
)

// Client is who sends a request, authenticated by the gateway.
type Client struct {
	ID string // sessions of others are not found
	// Open opens a session of the client.
	Open func(context.Context) (*Session, error)
	// Watch returns a channel that is closed when the client may do nothing any more, and
	// a function that ends the watch.
	Watch func() (ended <-chan struct{}, stop func())
}

// Handler serves sessions over streamable HTTP.
type Handler struct {
	inner *sdk.StreamableHTTPHandler
	idle  time.Duration

	mu       sync.Mutex
	sessions map[string]*httpSession
	work     sync.WaitGroup
}

// httpSession is a session of a client.
type httpSession struct {
	*Session
	id, client string
	server     *sdk.Server
	timer      *time.Timer // ends it; not running during requests
	requests   int
}

// NewHandler returns a handler without sessions.
func NewHandler(logger *slog.Logger) *Handler {
	h := &Handler{sessions: map[string]*httpSession{}, idle: httpIdle}
	h.inner = sdk.NewStreamableHTTPHandler(serverOf, &sdk.StreamableHTTPOptions{
		Logger: logger, MaxRequestBodyBytes: MaxHTTPBody, DisableLocalhostProtection: true, // the gateway checks Host and Origin
	})
	return h
}

type sessionKey struct{}

// serverOf is the server of a request's session; nil without one.
func serverOf(r *http.Request) *sdk.Server {
	if s, ok := r.Context().Value(sessionKey{}).(*httpSession); ok {
		return s.server
	}
	return nil
}

// ServeClient serves a request of a client.
func (h *Handler) ServeClient(w http.ResponseWriter, r *http.Request, c *Client) error {
	if id := r.Header.Get(sessionHeader); id != "" || r.Method != http.MethodPost {
		return h.serveKnown(w, r, c, id)
	}
	s, err := h.create(r.Context(), c)
	if err != nil {
		return err
	}
	h.serve(w, r, s)
	h.keep(s, c)
	return nil
}

// serveKnown serves a request of a session that is open. DELETE ends it, with its commands.
func (h *Handler) serveKnown(w http.ResponseWriter, r *http.Request, c *Client, id string) error {
	h.mu.Lock()
	s := h.sessions[id]
	h.mu.Unlock()
	if s == nil || s.client != c.ID {
		return ErrNoSession
	}
	if r.Method == http.MethodDelete {
		s.Session.end()
	}
	h.serve(w, r, s)
	return nil
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, s *httpSession) {
	h.touch(s, 1)
	defer h.touch(s, -1)
	h.inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, s)))
}

// touch counts the requests of a session; without any it ends after a while.
func (h *Handler) touch(s *httpSession, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.timer.Stop()
	if s.requests += n; s.requests == 0 {
		s.timer.Reset(h.idle)
	}
}

// create opens a session, within the limits.
func (h *Handler) create(ctx context.Context, c *Client) (*httpSession, error) {
	s := &httpSession{id: rand.Text(), client: c.ID}
	if err := h.reserve(s); err != nil {
		return nil, err
	}
	opened, err := c.Open(ctx)
	if err != nil {
		h.remove(s)
		return nil, err
	}
	server := newServer(opened, func() string { return s.id })
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions == nil { // closed meanwhile
		opened.Close()
		return nil, ErrTooManySessions
	}
	s.Session, s.server, s.timer = opened, server, time.AfterFunc(h.idle, func() { h.close(s) })
	return s, nil
}

func (h *Handler) reserve(s *httpSession) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	same := 0
	for _, other := range h.sessions {
		if other.client == s.client {
			same++
		}
	}
	if h.sessions == nil || len(h.sessions) >= MaxSessions || same >= MaxSessionsPerClient {
		return ErrTooManySessions
	}
	h.sessions[s.id] = s
	return nil
}

func (h *Handler) remove(s *httpSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, s.id)
}

// keep closes a session when its connection or its client ends; at once if the first
// request did not begin one.
func (h *Handler) keep(s *httpSession, c *Client) {
	for connected := range s.server.Sessions() {
		h.work.Go(func() { h.watch(s, c, connected) })
		return
	}
	h.close(s)
	h.finish(s)
}

func (h *Handler) watch(s *httpSession, c *Client, connected *sdk.ServerSession) {
	ended, stop := c.Watch()
	defer stop()
	over := make(chan struct{})
	go func() { defer close(over); _ = connected.Wait() }()
	select {
	case <-over:
	case <-ended:
		h.close(s)
	}
	h.finish(s)
}

// close ends a session's commands and its connection.
func (h *Handler) close(s *httpSession) {
	s.Session.end()
	for connected := range s.server.Sessions() {
		_ = connected.Close() // the client may be gone
	}
}

// finish forgets a session and ends its use of the sandbox.
func (h *Handler) finish(s *httpSession) {
	h.remove(s)
	s.timer.Stop()
	s.Session.Close()
}

// Close ends every session, and returns when what they ran has ended.
func (h *Handler) Close() {
	h.mu.Lock()
	var all []*httpSession
	for _, s := range h.sessions {
		if s.server != nil {
			all = append(all, s)
		}
	}
	h.sessions = nil
	h.mu.Unlock()
	for _, s := range all {
		h.close(s)
	}
	h.work.Wait()
}
