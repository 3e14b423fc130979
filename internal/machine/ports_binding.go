package machine

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// portBinding is a port that is open for as long as its stream is.
type portBinding struct {
	*StreamOp
	id string
}

// bind has the guest open the port.
func (l *PortListener) bind(ctx context.Context) (*portBinding, error) {
	id := rand.Text()
	t, err := l.machine.OpenOp(ctx, &OpRequest{
		slots: l.machine.ports, Timeout: CallTimeout,
		Request: &wire.Request{Op: wire.OpPortListen, Port: &wire.Port{ID: id, Port: l.port, Backlog: l.options.Backlog, WithGrant: l.options.WithGrant, Grant: l.options.Grant}},
	})
	if err != nil {
		return nil, err
	}
	var bound wire.Bound
	if err := t.Answer(wire.FrameStarted, &bound); err != nil {
		t.Close()
		return nil, err
	}
	t.detachContext()
	return &portBinding{t, id}, nil
}

// release has the guest close the port, which it answers with the end of the
// stream.
func (l *portBinding) release() {
	l.stream.Close()
	_ = l.stream.SetReadDeadline(time.Now().Add(closeTimeout))
}

// keepOpen serves the port over one wire after the other.
func (l *PortListener) keepOpen(first *portBinding) {
	defer close(l.done)
	for current := first; current != nil; current = l.reopen() {
		l.serve(current)
	}
}

// reopen opens the port again, until that is impossible: then Accept returns why.
func (l *PortListener) reopen() *portBinding {
	for pause := relistenPause; ; pause = min(2*pause, relistenPauseMax) {
		select {
		case <-time.After(pause):
		case <-l.ctx.Done():
			return nil
		}
		binding, err := l.bind(l.ctx)
		if err == nil {
			return binding
		}
		if errors.Is(err, ErrBroken) || errors.Is(err, ErrClosed) {
			l.cancel(err)
			return nil
		}
	}
}

// serve accepts until the binding or the listener ends.
func (l *PortListener) serve(binding *portBinding) {
	ctx, cancel := context.WithCancel(l.ctx)
	var workers sync.WaitGroup
	for range min(spareAccepts, l.options.MaxConns) {
		workers.Go(func() {
			for l.acceptOne(ctx, binding) {
			}
			cancel()
		})
	}
	stop := context.AfterFunc(ctx, binding.release)
	if frame, err := binding.Frames.Frame(); err == nil { // nothing can come but its end
		_ = binding.UnexpectedFrame(frame)
	}
	stop()
	cancel()
	binding.Close()
	workers.Wait()
}

// acceptOne passes one connection to Accept. It reports whether there may be
// more.
func (l *PortListener) acceptOne(ctx context.Context, binding *portBinding) bool {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	conn, err := l.acceptStream(ctx, binding)
	if err != nil {
		<-l.slots
		return ctx.Err() == nil && errors.Is(err, errGateRefused)
	}
	select {
	case l.conns <- conn:
		return true
	case <-ctx.Done():
		_ = conn.Close()
		return false
	}
}

// errGateRefused is a connection that the gate did not let in.
var errGateRefused = errors.New("not let in")

// acceptStream waits for a connection that may come in.
func (l *PortListener) acceptStream(ctx context.Context, binding *portBinding) (*portConn, error) {
	t, err := l.machine.OpenOp(ctx, &OpRequest{
		wire: binding.wire, slots: l.machine.ports, Timeout: noTimeout,
		Request: &wire.Request{Op: wire.OpPortAccept, Port: &wire.Port{ID: binding.id}},
	})
	if err != nil {
		return nil, err
	}
	conn, err := newPortConn(t, l.port)
	if err == nil {
		err = l.gate(ctx, conn.caller)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	conn.closed = func() { <-l.slots }
	return conn, nil
}

func (l *PortListener) gate(ctx context.Context, caller Caller) error {
	if l.options.Gate == nil {
		return errGateRefused
	}
	if err := l.options.Gate(ctx, caller); err != nil {
		l.machine.options.Log.Debug("connection refused", "port", l.port, "error", err)
		return errGateRefused
	}
	return nil
}
