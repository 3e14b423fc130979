package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// answerPatience bounds a question that the guest answers from its head.
const answerPatience = 5 * time.Second

// ask performs an operation with a single answer, and reads that into v. It is
// tried once more if the wire turns out to be broken: such operations do not
// mind being asked twice.
func (m *Machine) ask(ctx context.Context, req *wire.Request, v any) error {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	live, err := m.control.get(ctx)
	if err != nil {
		return err
	}
	err = m.askOn(ctx, live, req, v)
	if !errors.Is(err, ErrLost) || ctx.Err() != nil {
		return err
	}
	if live, err = m.control.get(ctx); err != nil {
		return err
	}
	return m.askOn(ctx, live, req, v)
}

func (m *Machine) askOn(ctx context.Context, live *live, req *wire.Request, v any) error {
	// Whatever a guest does to a stream, closing its wire frees us.
	stop := context.AfterFunc(ctx, func() { live.Close() })
	defer stop()
	stream, err := open(live, req)
	if err != nil {
		return m.because(ctx, live, err)
	}
	defer stream.Close()
	frame, err := wire.NewReader(stream).Frame()
	if err != nil {
		return m.because(ctx, live, err)
	}
	switch frame.Type {
	case wire.FrameResult:
		err = frame.Decode(v)
	case wire.FrameError:
		return m.guestSays(live, frame)
	default:
		err = fmt.Errorf("%w: frame %d answers %q", wire.ErrProtocol, frame.Type, req.Op)
	}
	if err != nil {
		return m.cut(live, err)
	}
	return nil
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

// cut ends a wire whose guest broke the protocol.
func (m *Machine) cut(live *live, err error) error {
	live.Close()
	if errors.Is(err, wire.ErrProtocol) {
		return m.fail(err)
	}
	return lost(err)
}

// because turns the failure of a stream into the reason that matters: the
// caller gave up, the machine was closed, the guest broke the protocol, or the
// wire is lost.
func (m *Machine) because(ctx context.Context, live *live, err error) error {
	if e, ok := errors.AsType[*wire.Error](err); ok { // our own refusal, before anything was sent
		return reported(e)
	}
	switch {
	case m.ctx.Err() != nil:
		return ErrClosed
	case live.Err() != nil:
		return m.fail(live.Err())
	case errors.Is(err, wire.ErrProtocol):
		return m.cut(live, err)
	case ctx.Err() != nil:
		live.Close()
		return lost(ctx.Err())
	}
	live.Close()
	return lost(err)
}
