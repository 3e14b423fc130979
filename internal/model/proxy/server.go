package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/membudget"
)

// Server serves callers. Make one with New, and Close it.
type Server struct {
	options   Options
	providers []*provider
	memory    *membudget.Budget
	replays   replayCache

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // goroutines of connections

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	active map[audit.Subject]int // requests under way
}

// New returns a server. It makes no connection yet.
func New(o Options) (*Server, error) {
	o.fill()
	if o.Ledger == nil || o.Audit == nil {
		return nil, errors.New("a proxy needs a ledger and an audit log")
	}
	places, err := newProviders(o.Providers)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, providers: places, memory: membudget.New(o.MaxMemory, 0), conns: map[net.Conn]struct{}{}, active: map[audit.Subject]int{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.replays.init(o.KeepReplay)
	return s, nil
}

// Serve accepts connections and serves their callers. It returns when
// the listener or the server is closed, with nil.
func (s *Server) Serve(l net.Listener, authenticate Authenticate) error {
	defer context.AfterFunc(s.ctx, func() { l.Close() })()
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed) || s.ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		s.Handle(conn, authenticate)
	}
}

// Handle serves a connection, in the background, and closes it. Beyond the
// limit of connections it is closed at once.
func (s *Server) Handle(conn net.Conn, authenticate Authenticate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || len(s.conns) >= s.options.MaxConns {
		conn.Close()
		return
	}
	s.conns[conn] = struct{}{}
	s.work.Go(func() {
		defer s.forget(conn)
		c := newConn(s, conn, authenticate(conn))
		defer c.release()
		c.serve()
	})
}

func (s *Server) forget(conn net.Conn) {
	conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// enter counts a request of a caller; it returns false if too many are under way.
func (s *Server) enter(c *Caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[c.Subject] >= s.options.MaxPerCaller {
		return false
	}
	s.active[c.Subject]++
	return true
}

func (s *Server) leave(c *Caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[c.Subject]--; s.active[c.Subject] == 0 {
		delete(s.active, c.Subject)
	}
}

// Close ends every request: streams get an error event, and what was used is
// settled and recorded. It returns when all of it is done.
func (s *Server) Close() error {
	s.mu.Lock()
	s.cancel() // Handle takes no connection from here on
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	again := time.NewTicker(s.options.Tick)
	defer again.Stop()
	for {
		s.interruptReads()
		select {
		case <-done:
			for _, p := range s.providers {
				p.close()
			}
			return nil
		case <-again.C:
		}
	}
}

// interruptReads ends the reads of connections, so that they see that the server
// is closed. One may begin to read a moment later, so Close repeats it.
func (s *Server) interruptReads() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		_ = conn.SetReadDeadline(pastDeadline)
	}
}
