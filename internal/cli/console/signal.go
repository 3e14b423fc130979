package console

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// signalled is the cause of a context that a signal ended.
type signalled struct{ syscall.Signal }

func (s signalled) Error() string { return s.String() }

// WithSignals returns a context that ends when the user or the system asks the
// program to. A second signal ends the program at once. Writing to a closed
// pipe becomes an error like others, so that what runs inside is ended too.
//
// SIGHUP is one of them, unless the program asks for hangups: they tell a service
// to read its configuration again.
func WithSignals(parent context.Context) (context.Context, context.CancelFunc) {
	reload := &hangupChannel{told: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, hangupKey{}, reload))
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		for {
			select {
			case s := <-asked:
				if s == syscall.SIGHUP && reload.tell() {
					continue
				}
				signal.Stop(asked)
				number, _ := s.(syscall.Signal)
				cancel(signalled{number})
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

type hangupKey struct{}

// hangupChannel carries SIGHUP to a service that reloads its configuration.
type hangupChannel struct {
	wanted atomic.Bool
	told   chan struct{}
}

// tell passes a signal on; it reports false if hangups was not called.
func (h *hangupChannel) tell() bool {
	if !h.wanted.Load() {
		return false
	}
	select {
	case h.told <- struct{}{}:
	default: // one is waiting already
	}
	return true
}

// Hangups takes SIGHUP over: from now on it does not end the program. Without
// WithSignals there are none.
func Hangups(ctx context.Context) <-chan struct{} {
	h, ok := ctx.Value(hangupKey{}).(*hangupChannel)
	if !ok {
		return nil
	}
	h.wanted.Store(true)
	return h.told
}
