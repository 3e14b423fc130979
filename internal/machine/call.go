package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// callTimeout bounds a question that the guest answers from its head.
const callTimeout = 5 * time.Second

// unaryCall is an operation with a single answer.
type unaryCall struct {
	*wire.Request
	timeout  time.Duration // how long the guest may think; 0: callTimeout
	noRetry  bool          // must not be asked twice
	timedOut atomic.Bool   // the answer did not come in time
}

// call puts a question and reads the answer into v. If the wire turns out to be
// broken it is put once more over a new one, unless that could do harm, or the
// guest had all the time that it gets.
func (m *Machine) call(ctx context.Context, q *unaryCall, v any) error {
	wc, err := m.control.get(ctx)
	if err != nil {
		return err
	}
	err = m.callOn(ctx, wc, q, v)
	if !errors.Is(err, ErrLost) || q.noRetry || q.timedOut.Load() || ctx.Err() != nil {
		return err
	}
	if wc, err = m.control.get(ctx); err != nil {
		return err
	}
	return m.callOn(ctx, wc, q, v)
}

// callOn puts a question over one wire, and reads the answer into v.
func (m *Machine) callOn(ctx context.Context, wc *wireConn, q *unaryCall, v any) error {
	payload, err := m.roundTrip(ctx, wc, q)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return m.protocolError(wc, fmt.Errorf("%w: answer to %q: %w", wire.ErrProtocol, q.Op, err))
	}
	return nil
}

// roundTrip sends a question and returns the payload of its answer. Whatever a
// guest does to a stream, closing its wire frees us: that happens when the
// answer is overdue.
func (m *Machine) roundTrip(ctx context.Context, wc *wireConn, q *unaryCall) ([]byte, error) {
	patience := q.timeout
	if patience == 0 {
		patience = callTimeout
	}
	overdue := time.AfterFunc(patience, func() { q.timedOut.Store(true); _ = wc.Close() })
	select {
	case wc.calls <- struct{}{}:
	case <-ctx.Done():
		overdue.Stop()
		return nil, ctx.Err()
	case <-wc.Done():
		overdue.Stop()
		return nil, m.streamError(wc, net.ErrClosed)
	}
	settle := func() { overdue.Stop(); <-wc.calls }
	stream, err := open(wc, q.Request)
	if err != nil {
		settle()
		return nil, m.streamError(wc, err)
	}
	// A caller that gives up leaves at once. The answer is then awaited without
	// it, so that a guest that owes it is found out, and one that is only slow
	// keeps its wire.
	left := context.AfterFunc(ctx, func() { _ = stream.SetReadDeadline(time.Unix(1, 0)) })
	frame, err := wire.NewReader(stream).Frame()
	if !left() && err != nil {
		go func() {
			defer settle()
			defer stream.Close()
			_ = stream.SetReadDeadline(time.Time{})
			_, _ = wire.NewReader(stream).Frame()
		}()
		return nil, ctx.Err()
	}
	defer settle()
	defer stream.Close()
	if err != nil {
		return nil, m.streamError(wc, err)
	}
	return m.callResult(wc, q, frame)
}

// callResult judges the frame that answers a question.
func (m *Machine) callResult(wc *wireConn, q *unaryCall, frame wire.Frame) ([]byte, error) {
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

// errorFrame is the error that the guest reports in a frame.
func (m *Machine) errorFrame(wc *wireConn, frame wire.Frame) error {
	var e wire.Error
	if err := frame.Decode(&e); err != nil {
		return m.protocolError(wc, err)
	}
	return fromWire(&e)
}

// protocolError ends a wire whose guest broke the protocol, and declares it broken.
func (m *Machine) protocolError(wc *wireConn, err error) error {
	_ = wc.Close()
	return m.markBroken(err)
}

// streamError turns the failure of a stream into the reason that matters: it never
// left this side, the machine was closed, the guest broke the protocol, or the
// wire is lost.
func (m *Machine) streamError(wc *wireConn, err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return fromWire(e)
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
