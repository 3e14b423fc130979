package machine

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// requestEnd has the guest end the command. A guest that does not, or that does
// not send the result then, loses its wire. The request may arrive before the
// command has started, and is then repeated.
func (r *execCall) requestEnd(wc *wireConn, over <-chan struct{}) {
	q := r.endCall()
	q.Target.Forget = over == nil
	for deadline := time.Now().Add(q.Timeout); ; {
		err := r.machine.callOn(context.Background(), wc, q, &struct{}{})
		if over == nil || errors.Is(err, ErrLost) {
			return
		}
		pause := startRetry
		if !errors.Is(err, ErrNoProcess) {
			pause = endTimeout
		}
		select {
		case <-over:
			return
		case <-time.After(pause):
		}
		if time.Now().After(deadline) {
			_ = wc.Close()
			return
		}
	}
}

func (r *execCall) endCall() *UnaryCall {
	grace := r.command.grace()
	return &UnaryCall{
		Request: &wire.Request{Op: wire.OpEnd, Target: &wire.Target{ID: r.id, GraceMs: wire.Milliseconds(grace)}},
		Timeout: grace + endTimeout,
	}
}

// endOrKill ends a command whose wire is gone, over a new one. If that fails too,
// the sandbox is killed from outside, if Options.Kill is set.
func (r *execCall) endOrKill(ctx context.Context, err error) error {
	if !errors.Is(err, ErrLost) {
		return err
	}
	cause := context.Cause(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.command.grace()+endTimeout)
	defer cancel()
	if r.endOnNewWire(ctx) {
		return err
	}
	if errors.Is(cause, errOverdue) {
		err = asLost(errors.Join(cause, err))
	}
	if kill := r.machine.options.Kill; kill != nil {
		r.machine.options.Log.Warn("the guest does not end a command: killing the sandbox", "error", err)
		err = errors.Join(err, kill(context.WithoutCancel(ctx)))
	}
	return err
}

// endOnNewWire ends the command over a new wire, and retries until ctx ends. It
// reports whether the command is gone.
func (r *execCall) endOnNewWire(ctx context.Context) bool {
	q := r.endCall()
	q.Target.Forget = true
	for {
		wc, err := r.connectSameBoot(ctx)
		if err == nil {
			err = r.machine.callOn(ctx, wc, q, &struct{}{})
		}
		if !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return err == nil || errors.Is(err, ErrNoProcess)
		}
	}
}
