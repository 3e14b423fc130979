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

// answerPatience bounds a question that the guest answers from its head.
const answerPatience = 5 * time.Second

// question is an operation with a single answer.
type question struct {
	*wire.Request
	patience time.Duration // how long the guest may think; 0: answerPatience
	once     bool          // must not be asked twice
	overdue  atomic.Bool   // the answer did not come in time
}

// ask puts a question and reads the answer into v. If the wire turns out to be
// broken it is put once more over a new one, unless that could do harm, or the
// guest had all the time that it gets.
func (m *Machine) ask(ctx context.Context, q *question, v any) error {
	live, err := m.control.get(ctx)
	if err != nil {
		return err
	}
	err = m.askOn(ctx, live, q, v)
	if !errors.Is(err, ErrLost) || q.once || q.overdue.Load() || ctx.Err() != nil {
		return err
	}
	if live, err = m.control.get(ctx); err != nil {
		return err
	}
	return m.askOn(ctx, live, q, v)
}

// askOn puts a question over one wire, and reads the answer into v.
func (m *Machine) askOn(ctx context.Context, live *live, q *question, v any) error {
	payload, err := m.exchange(ctx, live, q)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return m.cut(live, fmt.Errorf("%w: answer to %q: %w", wire.ErrProtocol, q.Op, err))
	}
	return nil
}

// exchange sends a question and returns the payload of its answer. Whatever a
// guest does to a stream, closing its wire frees us: that happens when the
// answer is overdue.
func (m *Machine) exchange(ctx context.Context, live *live, q *question) ([]byte, error) {
	patience := q.patience
	if patience == 0 {
		patience = answerPatience
	}
	overdue := time.AfterFunc(patience, func() { q.overdue.Store(true); _ = live.Close() })
	select {
	case live.questions <- struct{}{}:
	case <-ctx.Done():
		overdue.Stop()
		return nil, ctx.Err()
	case <-live.Done():
		overdue.Stop()
		return nil, m.because(live, net.ErrClosed)
	}
	settle := func() { overdue.Stop(); <-live.questions }
	stream, err := open(live, q.Request)
	if err != nil {
		settle()
		return nil, m.because(live, err)
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
		return nil, m.because(live, err)
	}
	return m.answer(live, q, frame)
}

// answer judges the frame that answers a question.
func (m *Machine) answer(live *live, q *question, frame wire.Frame) ([]byte, error) {
	switch frame.Type {
	case wire.FrameResult:
		return frame.Payload, nil
	case wire.FrameError:
		return nil, m.guestSays(live, frame)
	}
	return nil, m.cut(live, fmt.Errorf("%w: frame %d answers %q", wire.ErrProtocol, frame.Type, q.Op))
}

// open starts a stream and sends its request.
func open(live *live, req *wire.Request) (net.Conn, error) {
	stream, err := live.Open()
	if err != nil {
		return nil, err
	}
	if err := live.request(stream, req); err != nil {
		stream.Close()
		return nil, err
	}
	return stream, nil
}

// guestSays is the error that the guest reports in a frame.
func (m *Machine) guestSays(live *live, frame wire.Frame) error {
	var e wire.Error
	if err := frame.Decode(&e); err != nil {
		return m.cut(live, err)
	}
	return reported(&e)
}

// cut ends a wire whose guest broke the protocol, and declares it broken.
func (m *Machine) cut(live *live, err error) error {
	_ = live.Close()
	return m.fail(err)
}

// because turns the failure of a stream into the reason that matters: it never
// left this side, the machine was closed, the guest broke the protocol, or the
// wire is lost.
func (m *Machine) because(live *live, err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return reported(e)
	}
	_ = live.Close()
	switch {
	case m.ctx.Err() != nil:
		return ErrClosed
	case live.Err() != nil:
		return m.fail(live.Err())
	case errors.Is(err, wire.ErrProtocol):
		return m.fail(err)
	}
	return lost(err)
}
