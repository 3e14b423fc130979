package main

import (
	"context"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// onSignal is a context that ends when the program is told to leave. It listens
// for that from when somebody first waits for its end: to listen takes threads,
// and so as long as much of a short command. Before that nobody would have to be
// told, and the program just ends.
type onSignal struct {
	begin sync.Once
	heard atomic.Pointer[hearing] // nil: nobody listens
}

type hearing struct {
	context.Context
	stop context.CancelFunc
}

func (s *onSignal) listen() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	s.heard.Store(&hearing{ctx, stop})
}

// deafen makes an end of listening.
func (s *onSignal) deafen() {
	if heard := s.heard.Load(); heard != nil {
		heard.stop()
	}
}

// Done implements context.Context.
func (s *onSignal) Done() <-chan struct{} {
	s.begin.Do(s.listen)
	return s.heard.Load().Done()
}

// Err implements context.Context.
func (s *onSignal) Err() error {
	if heard := s.heard.Load(); heard != nil {
		return heard.Err()
	}
	return nil
}

// Value implements context.Context. Contexts ask it for their parents.
func (s *onSignal) Value(key any) any {
	if heard := s.heard.Load(); heard != nil {
		return heard.Value(key)
	}
	return nil
}

// Deadline implements context.Context.
func (s *onSignal) Deadline() (time.Time, bool) { return time.Time{}, false }
