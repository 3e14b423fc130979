package machine

import (
	"errors"
	"io"
	"net"
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
)

// wireError is a failure to send, as opposed to one to get what is to be sent.
type wireError struct{ error }

func (e wireError) Unwrap() error { return e.error }

// Write sends to the guest, which has to keep reading.
func (t *streamOp) Write(p []byte) (int, error) {
	t.setDeadline(t.stream.SetWriteDeadline)
	n, err := t.stream.Write(p)
	if err != nil {
		err = wireError{err}
	}
	return n, err
}

// WriteBuffers is Write for several pieces.
func (t *streamOp) WriteBuffers(b *net.Buffers) (int64, error) {
	t.setDeadline(t.stream.SetWriteDeadline)
	n, err := b.WriteTo(t.stream)
	if err != nil {
		err = wireError{err}
	}
	return n, err
}

// sendContent sends while it waits for the answer: a guest that refuses need not be
// sent the rest.
func (t *streamOp) sendContent(send func(*wire.DataWriter) error, v any) error {
	answered := make(chan error, 1)
	go func() {
		err := t.awaitResult(v)
		_ = t.stream.SetWriteDeadline(past) // whatever is not sent by now is not wanted
		answered <- err
	}()
	data := wire.NewDataWriter(t)
	defer data.Close()
	if t.conn != nil {
		data.Large()
	}
	sendErr := send(data)
	if _, ok := errors.AsType[wireError](sendErr); sendErr != nil && !ok {
		t.closedByHost.Store(true) // nothing to say, so nothing to wait for
		_ = t.stream.SetReadDeadline(past)
		<-answered
		return sendErr
	}
	t.extendRead()
	err := <-answered
	if err == nil && sendErr != nil {
		return t.violation("an answer before everything was sent")
	}
	return err
}

// awaitResult waits for the answer for as long as it takes to send.
func (t *streamOp) awaitResult(v any) error {
	frame, err := t.frames.Frame()
	switch {
	case err != nil:
		return t.errorFor(err)
	case frame.Type == wire.FrameError:
		return t.errorFrame(frame)
	case frame.Type != wire.FrameResult:
		return t.unexpectedFrame(frame)
	}
	return t.decode(frame, v)
}

// copyData sends content to its end.
func copyData(data *wire.DataWriter, content io.Reader) error {
	for {
		_, err := data.Next(content.Read)
		if errors.Is(err, io.EOF) {
			return data.End()
		}
		if err != nil {
			return err
		}
	}
}

// transferBuffer holds what moves between a stream and something else.
type transferBuffer [wire.DataFrame]byte

var transferBuffers = sync.Pool{New: func() any { return new(transferBuffer) }}
