package machine

import (
	"errors"
	"net"

	"github.com/atoll-run/atoll/internal/wire"
)

// sendError is a failure to send, as opposed to one to read what is to be sent.
type sendError struct{ error }

func (e sendError) Unwrap() error { return e.error }

// Write sends to the guest, which has to keep reading.
func (op *StreamOp) Write(p []byte) (int, error) {
	op.setDeadline(op.stream.SetWriteDeadline)
	n, err := op.stream.Write(p)
	if err != nil {
		err = sendError{err}
	}
	return n, err
}

// WriteBuffers is Write for several pieces.
func (op *StreamOp) WriteBuffers(b *net.Buffers) (int64, error) {
	op.setDeadline(op.stream.SetWriteDeadline)
	n, err := b.WriteTo(op.stream)
	if err != nil {
		err = sendError{err}
	}
	return n, err
}

// SendContent sends while it waits for the answer, which it reads into v: a guest
// that refuses need not be sent the rest.
func (op *StreamOp) SendContent(send func(*wire.DataWriter) error, v any) error {
	answered := make(chan error, 1)
	go func() {
		err := op.awaitResult(v)
		_ = op.stream.SetWriteDeadline(past) // what is not sent by now is not wanted
		answered <- err
	}()
	data := wire.NewDataWriter(op)
	defer data.Close()
	if op.conn != nil {
		data.Large()
	}
	sendErr := send(data)
	if _, ok := errors.AsType[sendError](sendErr); sendErr != nil && !ok {
		op.closedByHost.Store(true) // nothing to send, so nothing to wait for
		_ = op.stream.SetReadDeadline(past)
		<-answered
		return sendErr
	}
	op.extendRead()
	err := <-answered
	if err == nil && sendErr != nil {
		return op.Violation("an answer before everything was sent")
	}
	return err
}

// awaitResult waits for the answer for as long as sending takes.
func (op *StreamOp) awaitResult(v any) error {
	frame, err := op.Frames.Frame()
	switch {
	case err != nil:
		return op.ErrorFor(err)
	case frame.Type == wire.FrameError:
		return op.ErrorFrame(frame)
	case frame.Type != wire.FrameResult:
		return op.UnexpectedFrame(frame)
	}
	return op.Decode(frame, v)
}
