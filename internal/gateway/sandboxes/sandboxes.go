// Package sandboxes keeps the sandboxes that programs make through the gateway's API:
// their records, deadlines, and the way into them. Each belongs to an account; who may
// see one is decided by the caller of this package.
package sandboxes

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// The kinds of failure.
var (
	// ErrNotFound is an id that no sandbox has.
	ErrNotFound = errhint.With(errors.New("there is no such sandbox"), "`atoll ps` shows what there is; a sandbox is removed at its deadline")
	// ErrStopped is a sandbox that does not run.
	ErrStopped = errors.New("the sandbox is stopped")
	// ErrEnding is a sandbox that is being removed or stopped.
	ErrEnding = errors.New("the sandbox is being ended")
)

// InvalidError is a request that cannot be meant, with what is wrong by JSON pointer.
type InvalidError struct{ Pointer, Detail string }

func (e *InvalidError) Error() string { return e.Pointer + ": " + e.Detail }

// Options configure a Service.
type Options struct {
	In *provide.Installation
	// Egress opens the names that sandboxes reach; nil if they reach none.
	Egress *egress.Service
	// Audit records a command before it is started. On an error it is not started.
	Audit  func(*audit.ExecEvent) error
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil is time.Now
}

// Service makes sandboxes, works in them and ends them at their deadlines.
type Service struct {
	Options
	records records
	changed chan struct{} // a deadline changed
	cancel  context.CancelFunc
	ctx     context.Context // ends with the service
	work    sync.WaitGroup
	mu      sync.Mutex
	live    map[string]*live // by id
}

// Open returns the service of an installation. It removes what a process that died
// left half made, and ends sandboxes at their deadlines until it is closed.
func Open(ctx context.Context, o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{Options: o, records: records{o.In.DB}, changed: make(chan struct{}, 1), live: map[string]*live{}}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.records.abandonCreating(ctx); err != nil {
		s.cancel()
		return nil, err
	}
	s.work.Go(s.watchDeadlines)
	return s, nil
}

// Close ends what is under way in sandboxes, which go on themselves.
func (s *Service) Close() {
	s.cancel()
	s.work.Wait()
	s.mu.Lock()
	all := make([]*live, 0, len(s.live))
	for _, l := range s.live {
		all = append(all, l)
	}
	s.mu.Unlock()
	for _, l := range all {
		s.close(l)
	}
}

// wake makes the deadlines be read again.
func (s *Service) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}
