package machine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// CallTimeout bounds a call that the guest answers without waiting for anything.
const CallTimeout = 5 * time.Second

// UnaryCall is an operation with a single answer.
type UnaryCall struct {
	*wire.Request
	Timeout  time.Duration // until the answer; 0: CallTimeout
	NoRetry  bool          // it must not be sent twice
	timedOut atomic.Bool   // the answer did not come in time

	exchanged chan struct{} // closed when the last attempt is over, also without the caller; nil: there was none
}

// Call sends a request and reads the answer into v. If the wire turns out to be
// broken it is sent once more over a new one, unless NoRetry is set or the guest
// has used up the timeout.
func (m *Machine) Call(ctx context.Context, q *UnaryCall, v any) error {
	wc, err := m.control.get(ctx)
	if err != nil {
		return err
	}
	err = m.callOn(ctx, wc, q, v)
	if !errors.Is(err, ErrLost) || q.NoRetry || q.timedOut.Load() || ctx.Err() != nil {
		return err
	}
	if wc, err = m.control.get(ctx); err != nil {
		return err
	}
	return m.callOn(ctx, wc, q, v)
}

// callOn sends a request over one wire, and reads the answer into v.
func (m *Machine) callOn(ctx context.Context, wc *wireConn, q *UnaryCall, v any) error {
	payload, err := m.roundTrip(ctx, wc, q)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return m.protocolError(wc, fmt.Errorf("%w: answer to %q: %w", wire.ErrProtocol, q.Op, err))
	}
	return nil
}

// roundTrip sends a request and returns the payload of its answer. A caller whose
// context ends leaves at once, also where a guest holds the multiplexer in the
// middle of a frame and no deadline of a stream counts. The exchange then goes on
// without it, so that a guest that is only slow keeps its wire.
func (m *Machine) roundTrip(ctx context.Context, wc *wireConn, q *UnaryCall) ([]byte, error) {
	type answer struct {
		payload []byte
		err     error
	}
	timer := time.AfterFunc(cmp.Or(q.Timeout, CallTimeout), func() { q.timedOut.Store(true); _ = wc.Close() })
	select {
	case wc.calls <- struct{}{}:
	case <-ctx.Done():
		timer.Stop()
		return nil, ctx.Err()
	case <-wc.Done():
		timer.Stop()
		return nil, m.streamError(wc, net.ErrClosed)
	}
	answered := make(chan answer, 1)
	q.exchanged = make(chan struct{})
	go func() {
		defer close(q.exchanged)
		payload, err := m.exchange(wc, q)
		timer.Stop()
		<-wc.calls
		answered <- answer{payload, err}
	}()
	select {
	case a := <-answered:
		return a.payload, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// exchange sends a request over a stream and reads its answer. Whatever a guest
// does to the stream, closing the wire ends it.
func (m *Machine) exchange(wc *wireConn, q *UnaryCall) ([]byte, error) {
	stream, err := open(wc, q.Request)
	if err != nil {
		return nil, m.streamError(wc, err)
	}
	defer stream.Close()
	frame, err := wire.NewReader(stream).Frame()
	if err != nil {
		return nil, m.streamError(wc, err)
	}
	return m.callResult(wc, q, frame)
}

// callResult returns the payload or the error of the frame that answers a call.
func (m *Machine) callResult(wc *wireConn, q *UnaryCall, frame wire.Frame) ([]byte, error) {
	switch frame.Type {
	case wire.FrameResult:
		return frame.Payload, nil
	case wire.FrameError:
		return nil, m.errorFrame(wc, frame)
	}
	return nil, m.protocolError(wc, fmt.Errorf("%w: frame %d answers %q", wire.ErrProtocol, frame.Type, q.Op))
}

// open starts a stream and sends its request.
func open(wc *wireConn, req *wire.Request) (net.Conn, error) {
	stream, err := wc.Open()
	if err != nil {
		return nil, err
	}
	if err := wc.writeRequest(stream, req); err != nil {
		stream.Close()
		return nil, err
	}
	return stream, nil
}

// errorFrame returns the error that a frame holds.
func (m *Machine) errorFrame(wc *wireConn, frame wire.Frame) error {
	var e wire.Error
	if err := frame.Decode(&e); err != nil {
		return m.protocolError(wc, err)
	}
	return GuestError(&e)
}

// protocolError ends a wire whose guest broke the protocol, and declares it broken.
func (m *Machine) protocolError(wc *wireConn, err error) error {
	_ = wc.Close()
	return m.markBroken(err)
}

// streamError closes the wire of a stream that failed and returns the reason: the
// request was refused on this side, the machine was closed, the guest broke the
// protocol, or the wire is lost.
func (m *Machine) streamError(wc *wireConn, err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return GuestError(e)
	}
	_ = wc.Close()
	switch {
	case m.ctx.Err() != nil:
		return ErrClosed
	case wc.Err() != nil:
		return m.markBroken(wc.Err())
	case errors.Is(err, wire.ErrProtocol):
		return m.markBroken(err)
	}
	return asLost(err)
}
