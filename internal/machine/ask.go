package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
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
}

// ask puts a question and reads the answer into v. If the wire turns out to be
// broken it is put once more over a new one, unless that could do harm.
func (m *Machine) ask(ctx context.Context, q *question, v any) error {
	live, err := m.control.get(ctx)
	if err != nil {
		return err
	}
	err = m.askOn(ctx, live, q, v)
	if !errors.Is(err, ErrLost) || q.once || ctx.Err() != nil {
		return err
	}
	if live, err = m.control.get(ctx); err != nil {
		return err
	}
	return m.askOn(ctx, live, q, v)
}

// askOn puts a question over one wire. A caller that gives up leaves at once;
// the answer is then awaited without it, so that a guest which owes it is found
// out and one that is only slow keeps its wire.
func (m *Machine) askOn(ctx context.Context, live *live, q *question, v any) error {
	type answer struct {
		payload []byte
		err     error
	}
	answered := make(chan answer, 1)
	go func() {
		payload, err := m.exchange(live, q)
		answered <- answer{payload, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			return a.err
		}
		if err := json.Unmarshal(a.payload, v); err != nil {
			return m.cut(live, fmt.Errorf("%w: answer to %q: %w", wire.ErrProtocol, q.Op, err))
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// exchange sends a question and returns the payload of its answer.
func (m *Machine) exchange(live *live, q *question) ([]byte, error) {
	patience := q.patience
	if patience == 0 {
		patience = answerPatience
	}
	// Whatever a guest does to a stream, closing its wire frees us.
	overdue := time.AfterFunc(patience, func() { live.Close() })
	defer overdue.Stop()
	select {
	case live.questions <- struct{}{}:
		defer func() { <-live.questions }()
	case <-live.Done():
		return nil, m.because(live, net.ErrClosed)
	}
	stream, err := open(live, q.Request)
	if err != nil {
		return nil, m.because(live, err)
	}
	defer stream.Close()
	frame, err := wire.NewReader(stream).Frame()
	if err != nil {
		return nil, m.because(live, err)
	}
	switch frame.Type {
	case wire.FrameResult:
		return slices.Clone(frame.Payload), nil
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
	if err := wire.WriteRequest(stream, req); err != nil {
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
	live.Close()
	return m.fail(err)
}

// because turns the failure of a stream into the reason that matters: it never
// left this side, the machine was closed, the guest broke the protocol, or the
// wire is lost.
func (m *Machine) because(live *live, err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return reported(e)
	}
	live.Close()
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
