package wire

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// Session is a greeted connection that carries streams. Its streams are plain
// connections; whatever one of them suffers, closing the session frees it.
type Session struct {
	mux   *yamux.Session
	guard *guard

	// of a host:
	pulse  *pulse
	direct atomic.Int64 // who waits for the guest on direct wires
}

// HostSession starts the host's side of a session. It opens every stream; a
// guest that opens one is cut off. One that is silent while somebody waits for
// it loses the session after KeepAlive and WriteTimeout.
func HostSession(conn net.Conn) (*Session, error) { return hostSession(conn, KeepAlive, WriteTimeout) }

func hostSession(conn net.Conn, keepAlive, timeout time.Duration) (*Session, error) {
	guard := newGuard(conn, hostSide)
	config := muxConfig(guard)
	config.ConnectionWriteTimeout = timeout // of pings, too
	mux, err := yamux.Client(guard, config)
	if err != nil {
		return nil, err
	}
	s := &Session{mux: mux, guard: guard}
	ping := func() error { _, err := mux.Ping(); return err }
	s.pulse = newPulse(keepAlive, s.awaited, ping, func() { _ = s.Close() })
	return s, nil
}

// awaited reports whether somebody waits for the guest.
func (s *Session) awaited() bool { return s.direct.Load() > 0 || s.mux.NumStreams() > 0 }

// Await says that somebody waits for the guest on a direct wire of this session,
// until leave is called.
func (s *Session) Await() (leave func()) {
	s.direct.Add(1)
	s.pulse.wake()
	return func() { s.direct.Add(-1) }
}

// GuestSession starts the guest's side. It never sends a ping of its own: a
// quiet sandbox costs nothing.
func GuestSession(conn net.Conn) (*Session, error) {
	guard := newGuard(conn, guestSide)
	mux, err := yamux.Server(guard, muxConfig(guard))
	return &Session{mux: mux, guard: guard}, err
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
func (s *Session) Open() (net.Conn, error) {
	if s.mux.NumStreams() >= MaxStreams {
		return nil, Fail(CodeTooMany, fmt.Sprintf("the wire already carries %d streams", MaxStreams))
	}
	stream, err := s.mux.OpenStream()
	if err != nil {
		return nil, s.reason(err)
	}
	s.pulse.wake()
	return stream, nil
}

// Accept waits for the next stream that the other side opens.
func (s *Session) Accept() (net.Conn, error) {
	stream, err := s.mux.AcceptStream()
	if err != nil {
		return nil, s.reason(err)
	}
	return stream, nil
}

// Streams is the number of streams, open or closing.
func (s *Session) Streams() int { return s.mux.NumStreams() }

// Ended reports whether the other side has ended a stream, and not only the
// session with it. It remembers the last MaxStreams of them.
func (s *Session) Ended(stream net.Conn) bool {
	one, ok := stream.(*yamux.Stream)
	return ok && s.guard.hasFinished(one.StreamID())
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.mux.CloseChan() }

// Close ends the session and all its streams.
func (s *Session) Close() error {
	s.pulse.stop()
	return s.mux.Close()
}

// Err says why the session ended, if the peer broke the protocol: an error
// that wraps ErrProtocol, else nil.
func (s *Session) Err() error { return s.guard.verdict() }

// reason prefers what the guard saw over what its consequence looked like.
func (s *Session) reason(err error) error { return errors.Join(s.Err(), err) }
