package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/egress/rule"
)

const (
	// ResolverPort is the port that programs send questions about names to.
	ResolverPort = 53
	// ProxyPort is the port of the HTTP and SOCKS5 proxy.
	ProxyPort = 3128

	sweepEvery = time.Second
)

// loopback is the address of the resolver and the proxy in the sandbox.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Server is the egress of one grant in one sandbox.
type Server struct {
	o       Options
	rules   atomic.Pointer[Rules]
	ctx     context.Context
	cancel  context.CancelFunc
	names   *nameTable
	admit   *admission
	refused *refusedAddress
	queries chan struct{} // one for each question that is being answered
	tasks   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[*connection]bool
	fixed  []interface{ Close() error } // listeners that stay
}

// Open listens in the sandbox and serves until Close. The context is for the
// opening only.
func Open(ctx context.Context, o Options) (*Server, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	s := &Server{o: o, open: map[*connection]bool{}, queries: make(chan struct{}, maxQueries)}
	s.rules.Store(&o.Rules)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.names = newNameTable(s)
	s.admit = newAdmission(o.Now)
	s.refused = &refusedAddress{server: s}
	if err := s.listen(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("egress: %w", err)
	}
	s.tasks.Go(s.sweepRegularly)
	return s, nil
}

// listen opens the listeners that stay.
func (s *Server) listen(ctx context.Context) error {
	datagrams, err := s.o.Inside.ListenDatagrams(ctx, ResolverPort)
	if err != nil {
		return err
	}
	s.fixed = append(s.fixed, datagrams)
	s.tasks.Go(func() { s.answerDatagrams(datagrams) })
	if err := s.serveFixed(ctx, ResolverPort, s.answerStream); err != nil {
		return err
	}
	return s.serveFixed(ctx, ProxyPort, s.serveProxy)
}

func (s *Server) serveFixed(ctx context.Context, port int, handle func(net.Conn)) error {
	l, _, err := s.o.Inside.Listen(ctx, loopback, port)
	if err != nil {
		return err
	}
	s.fixed = append(s.fixed, l)
	s.tasks.Go(func() { s.accept(l, handle) })
	return nil
}

// accept handles the connections of a listener until it is closed. A handler
// that finds no room is not started.
func (s *Server) accept(l net.Listener, handle func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if !s.start(func() { defer s.admit.leave(); defer conn.Close(); handle(conn) }) {
			_ = conn.Close()
		}
	}
}

// start runs a handler unless too many wait or the server is closed.
func (s *Server) start(handle func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.admit.enter(s.Policy().Limits().Connections) {
		return false
	}
	s.tasks.Go(handle)
	return true
}

// Policy returns the rules in force.
func (s *Server) Policy() *rule.Policy { return s.rules.Load().Policy }

// Close closes the listeners and every connection, and returns when nothing is
// under way any more.
func (s *Server) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		s.tasks.Wait()
		return nil
	}
	s.cancel()
	for _, c := range s.connections() {
		c.close("egress was closed")
	}
	var errs []error
	for _, l := range s.fixed {
		errs = append(errs, l.Close())
	}
	s.refused.close()
	s.names.close()
	s.tasks.Wait()
	return errors.Join(errs...)
}
