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

// bindPort has the guest open a port, or a group of listeners.
func (m *Machine) bindPort(ctx context.Context, op wire.Op, port wire.Port) (*portBinding, error) {
	port.ID = rand.Text()
	t, err := m.OpenOp(ctx, &OpRequest{slots: m.ports, Timeout: CallTimeout, Request: &wire.Request{Op: op, Port: &port}})
	if err != nil {
		return nil, err
	}
	var bound wire.Bound
	if err := t.Answer(wire.FrameStarted, &bound); err != nil {
		t.Close()
		return nil, err
	}
	t.detachContext()
	return &portBinding{t, port.ID}, nil
}

// release has the guest close the port, which it answers with the end of the
// stream.
func (b *portBinding) release() {
	b.stream.Close()
	_ = b.stream.SetReadDeadline(time.Now().Add(closeTimeout))
}

// portKeeper keeps a port open over one wire after the other.
type portKeeper struct {
	ctx    context.Context // ends with Close, and when the port cannot be kept open
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when nothing is under way any more
	bind   func(context.Context) (*portBinding, error)
	serve  func(*portBinding) // returns when the binding or ctx ends
}

// keepOpen serves the port until it cannot be opened again, or ctx ends.
func (k *portKeeper) keepOpen(first *portBinding) {
	defer close(k.done)
	for current := first; current != nil; current = k.reopen() {
		k.serve(current)
	}
}

// reopen opens the port again, until that is impossible: then ctx ends with why.
func (k *portKeeper) reopen() *portBinding {
	for pause := relistenPause; ; pause = min(2*pause, relistenPauseMax) {
		select {
		case <-time.After(pause):
		case <-k.ctx.Done():
			return nil
		}
		binding, err := k.bind(k.ctx)
		if err == nil {
			return binding
		}
		if errors.Is(err, ErrBroken) || errors.Is(err, ErrClosed) {
			k.cancel(err)
			return nil
		}
	}
}

// accepting runs workers that accept until the binding or ctx ends, or one of them
// returns.
func (k *portKeeper) accepting(binding *portBinding, workers int, accept func(context.Context, *portBinding) bool) {
	ctx, cancel := context.WithCancel(k.ctx)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for accept(ctx, binding) {
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
	running.Wait()
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
	conn, err := binding.accept(ctx)
	if err != nil {
		return nil, err
	}
	if conn.caller.Port != l.port {
		err = conn.Violation("connection to another port")
	} else {
		err = l.gate(ctx, conn.caller)
	}
	if err != nil {
		conn.StreamOp.Close()
		return nil, err
	}
	conn.closed = func() { <-l.slots }
	return conn, nil
}

// accept waits for a connection.
func (b *portBinding) accept(ctx context.Context) (*portConn, error) {
	t, err := b.machine.OpenOp(ctx, &OpRequest{
		wire: b.wire, slots: b.machine.ports, Timeout: noTimeout,
		Request: &wire.Request{Op: wire.OpPortAccept, Port: &wire.Port{ID: b.id}},
	})
	if err != nil {
		return nil, err
	}
	conn, err := newPortConn(t)
	if err != nil {
		t.Close()
	}
	return conn, err
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
