package wire

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// Mux is a greeted connection that carries streams. Its streams are plain
// connections; whatever one of them suffers, closing the session frees it.
type Mux struct {
	session *yamux.Session
	guard   *guard

	// of a host:
	heartbeat     *heartbeat
	directWaiters atomic.Int64 // who waits for the guest on direct wires
}

// HostMux starts the host's side of a session. It opens every stream; a
// guest that opens one is cut off. One that is silent while somebody waits for
// it loses the session after KeepAlive and WriteTimeout.
func HostMux(conn net.Conn) (*Mux, error) { return hostMux(conn, KeepAlive, WriteTimeout) }

func hostMux(conn net.Conn, keepAlive, timeout time.Duration) (*Mux, error) {
	guard := newGuard(conn, hostSide)
	config := muxConfig(guard)
	config.ConnectionWriteTimeout = timeout // of pings, too
	mux, err := yamux.Client(guard, config)
	if err != nil {
		return nil, err
	}
	s := &Mux{session: mux, guard: guard}
	ping := func() error { _, err := mux.Ping(); return err }
	s.heartbeat = newHeartbeat(keepAlive, s.hasWaiters, ping, func() { _ = s.Close() })
	return s, nil
}

// hasWaiters reports whether somebody waits for the guest.
func (s *Mux) hasWaiters() bool { return s.directWaiters.Load() > 0 || s.session.NumStreams() > 0 }

// AddWaiter says that somebody waits for the guest on a direct wire of this session,
// until leave is called.
func (s *Mux) AddWaiter() (leave func()) {
	s.directWaiters.Add(1)
	s.heartbeat.start()
	return func() { s.directWaiters.Add(-1) }
}

// GuestMux starts the guest's side. It never sends a ping of its own: a
// quiet sandbox costs nothing.
func GuestMux(conn net.Conn) (*Mux, error) {
	guard := newGuard(conn, guestSide)
	mux, err := yamux.Server(guard, muxConfig(guard))
	return &Mux{session: mux, guard: guard}, err
}

func muxConfig(guard *guard) *yamux.Config {
	return &yamux.Config{
		AcceptBacklog:          MaxStreams,
		KeepAliveInterval:      KeepAlive, // not used: see pulse
		ConnectionWriteTimeout: WriteTimeout,
		MaxStreamWindowSize:    Window,
		StreamCloseTimeout:     closeTimeout,
		Logger:                 anomalyLog{guard},
	}
}

// Open starts a stream.
func (s *Mux) Open() (net.Conn, error) {
	if s.session.NumStreams() >= MaxStreams {
		return nil, Fail(CodeTooMany, fmt.Sprintf("the wire already carries %d streams", MaxStreams))
	}
	s.heartbeat.start() // before: a peer that stalls in the middle of a frame can hold OpenStream
	stream, err := s.session.OpenStream()
	if err != nil {
		return nil, s.withCause(err)
	}
	return stream, nil
}

// Accept waits for the next stream that the other side opens.
func (s *Mux) Accept() (net.Conn, error) {
	stream, err := s.session.AcceptStream()
	if err != nil {
		return nil, s.withCause(err)
	}
	return stream, nil
}

// Streams is the number of streams, open or closing.
func (s *Mux) Streams() int { return s.session.NumStreams() }

// Ended reports whether the other side has ended a stream, and not only the
// session with it. It remembers the last MaxStreams of them.
func (s *Mux) Ended(stream net.Conn) bool {
	one, ok := stream.(*yamux.Stream)
	return ok && s.guard.hasFinished(one.StreamID())
}

// Done is closed when the session has ended.
func (s *Mux) Done() <-chan struct{} { return s.session.CloseChan() }

// Close ends the session and all its streams.
func (s *Mux) Close() error {
	s.heartbeat.stop()
	return s.session.Close()
}

// Err says why the session ended, if the peer broke the protocol: an error
// that wraps ErrProtocol, else nil.
func (s *Mux) Err() error { return s.guard.cause() }

// withCause prefers what the guard saw over what its consequence looked like.
func (s *Mux) withCause(err error) error { return errors.Join(s.Err(), err) }
