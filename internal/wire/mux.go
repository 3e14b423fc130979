package wire

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// Mux is a connection after the handshake that carries streams. Whatever blocks
// one of its streams, closing the Mux ends it.
type Mux struct {
	session *yamux.Session
	guard   *guard

	// only on the host:
	heartbeat     *heartbeat
	directWaiters atomic.Int64 // direct connections in use
}

// HostMux starts the host's side. It opens every stream; a guest that opens one
// loses the connection, and so does one that does not answer a ping within
// WriteTimeout while something waits for it.
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
	s.heartbeat = newHeartbeat(keepAlive, s.hasWaiters, s.Ping, func() { _ = s.Close() })
	return s, nil
}

// hasWaiters reports whether something waits for the guest.
func (s *Mux) hasWaiters() bool { return s.directWaiters.Load() > 0 || s.session.NumStreams() > 0 }

// AddWaiter keeps the heartbeat going for a direct connection of this wire, until
// leave is called.
func (s *Mux) AddWaiter() (leave func()) {
	s.directWaiters.Add(1)
	s.heartbeat.start()
	return func() { s.directWaiters.Add(-1) }
}

// GuestMux starts the guest's side. It sends no pings, so that an idle sandbox
// costs nothing.
func GuestMux(conn net.Conn) (*Mux, error) {
	guard := newGuard(conn, guestSide)
	mux, err := yamux.Server(guard, muxConfig(guard))
	return &Mux{session: mux, guard: guard}, err
}

func muxConfig(guard *guard) *yamux.Config {
	return &yamux.Config{
		AcceptBacklog:          MaxStreams,
		KeepAliveInterval:      KeepAlive, // not used: see heartbeat
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

// Ping returns when the other side has answered; it fails after WriteTimeout.
func (s *Mux) Ping() error {
	_, err := s.session.Ping()
	return err
}

// Streams is the number of streams, open or closing.
func (s *Mux) Streams() int { return s.session.NumStreams() }

// Ended reports whether the other side has closed a stream, and not only the
// whole wire. The last MaxStreams of them are kept.
func (s *Mux) Ended(stream net.Conn) bool {
	one, ok := stream.(*yamux.Stream)
	return ok && s.guard.hasFinished(one.StreamID())
}

// Done is closed when the wire has ended.
func (s *Mux) Done() <-chan struct{} { return s.session.CloseChan() }

// Close ends the wire and all its streams.
func (s *Mux) Close() error {
	s.heartbeat.stop()
	return s.session.Close()
}

// Err returns why the wire ended if the peer broke the protocol: an error that
// wraps ErrProtocol, else nil.
func (s *Mux) Err() error { return s.guard.cause() }

// withCause adds the protocol violation that the guard found, if any, to an error
// of yamux.
func (s *Mux) withCause(err error) error { return errors.Join(s.Err(), err) }
