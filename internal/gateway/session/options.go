package session

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/session/attach"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/store"
)

// Options configure a Service.
type Options struct {
	DB     *store.DB
	Worker Worker
	Names  policy.Sessions // for parsing keys
	// Agents returns the ids of existing agents; nil accepts every id.
	Agents func() []string
	Limits Limits
	Logger *slog.Logger // nil discards
	// OnEnd, if set, is called with every task that is over.
	OnEnd func(*Record)
	// Attachments stores files that come with messages; nil accepts none.
	Attachments *attach.Spool
}

// Limits bound what callers can make the service store and execute.
type Limits struct {
	Running    int // tasks at once, most of which wait for models; default 512
	PerSession int // tasks that wait in one session; default 32
	PerAccount int // tasks that wait in all sessions of an account; default 1,024
	Waiting    int // tasks that wait, of all accounts; default 4,096
	// Bytes of waiting tasks, of an account and of all accounts; default 64 and 256
	// MiB.
	AccountBytes, WaitingBytes int64
	Sessions                   int           // that an account may have; default 100,000
	Message                    int           // bytes of a message and its instructions; default 4 MiB
	Timeout                    time.Duration // of a task that names none; default 10 minutes
	MaxTimeout                 time.Duration // that a task may name; default 24 hours
	Keep                       time.Duration // of tasks that are over; default 7 days
	Buffer                     int           // events that a subscriber may leave unread, at most; default 8,192
}

func (l Limits) withDefaults() Limits {
	l.Running = cmp.Or(l.Running, 512)
	l.PerSession = cmp.Or(l.PerSession, 32)
	l.PerAccount = cmp.Or(l.PerAccount, 1024)
	l.Waiting = cmp.Or(l.Waiting, 4096)
	l.AccountBytes = cmp.Or(l.AccountBytes, 64<<20)
	l.WaitingBytes = cmp.Or(l.WaitingBytes, 256<<20)
	l.Sessions = cmp.Or(l.Sessions, 100_000)
	l.Message = cmp.Or(l.Message, 4<<20)
	l.Timeout = cmp.Or(l.Timeout, 10*time.Minute)
	l.MaxTimeout = cmp.Or(l.MaxTimeout, 24*time.Hour)
	l.Keep = cmp.Or(l.Keep, 7*24*time.Hour)
	l.Buffer = cmp.Or(l.Buffer, 8192)
	return l
}

// New returns a service. Recover resumes what an earlier process left; Close ends
// it.
func New(o Options) *Service {
	o.Limits = o.Limits.withDefaults()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{
		Options: o, rows: rows{o.DB}, hub: newHub(),
		queues: map[sessionRef]*taskQueue{}, tasks: map[taskID]*task{}, busy: map[string]int{}, ready: map[string][]*taskQueue{}, queued: map[string]int{}, held: map[string]int64{},
	}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	return s
}
