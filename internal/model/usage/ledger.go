package usage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/store"
)

// Options are what a Ledger is opened with.
type Options struct {
	Dir    string          // of the journal
	DB     *store.DB       // where settled calls end up
	Locks  *filelock.Locks // held by living processes
	Prices *Prices         // nil: every model is unpriced
	// CountUnpriced lets calls of unpriced models through although a budget of
	// money holds for them. Without it they are refused: they would be free.
	CountUnpriced bool
	Logger        *slog.Logger     // nil discards
	Now           func() time.Time // nil is the clock
	// ProjectEvery is how often settled calls move into SQLite, and the
	// journal is synced to the disk. Zero is DefaultProjectEvery.
	ProjectEvery time.Duration
}

const (
	// DefaultProjectEvery also bounds what a power failure can lose. A killed
	// process loses nothing.
	DefaultProjectEvery = 250 * time.Millisecond
	// maxLag is how many bytes of the journal may wait for SQLite. With more
	// nothing new is reserved.
	maxLag = 64 << 20
	// rotateAt is the size at which a journal is replaced.
	rotateAt = 4 << 20
	// reapEvery bounds how often a refused call looks for dead processes.
	reapEvery = time.Second
)

// Errors of the ledger other than of budgets.
var (
	ErrClosed    = errors.New("the ledger is closed")
	ErrDuplicate = errors.New("a call with this id was made before")
	ErrEnded     = errors.New("the reservation was ended by another process and charged in full")
	ErrBacklog   = errors.New("settled calls cannot be stored, so nothing more is spent")
)

// UnpricedError refuses a model without a price where a budget of money holds.
type UnpricedError struct{ Model string }

func (e *UnpricedError) Error() string {
	return fmt.Sprintf("model %q has no price, so its budget of money cannot be kept", e.Model)
}

// Ledger keeps what is spent and reserved. It is safe for concurrent use, and
// several processes may have one open on the same directory.
type Ledger struct {
	options  Options
	owner    string
	alive    *filelock.Lock
	rotateAt int64

	// mu guards what follows, and the journal's use by this process. Code
	// that also needs SQLite's write lock takes that first, then mu, then the
	// journal's lock.
	mu      sync.Mutex
	journal *journal
	state   *ledgerState
	stored  journalPos // how far SQLite is known to be
	broken  error      // the journal is damaged; nil: it is not
	reaped  time.Time
	closing bool
	closed  bool

	stop chan struct{}
	done chan struct{}
}

// Open opens the ledger and settles what dead processes left.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ProjectEvery == 0 {
		o.ProjectEvery = DefaultProjectEvery
	}
	l := &Ledger{options: o, owner: rand.Text(), rotateAt: rotateAt, state: newState(), stop: make(chan struct{}), done: make(chan struct{})}
	if err := l.open(ctx); err != nil {
		return nil, fmt.Errorf("ledger of usage: %w", err)
	}
	go l.background(context.WithoutCancel(ctx))
	return l, nil
}

func (l *Ledger) open(ctx context.Context) (err error) {
	if l.alive, err = l.options.Locks.Hold(ctx, ownerLease(l.owner)); err != nil {
		return err
	}
	if l.stored, err = l.storedPos(ctx); err != nil {
		l.alive.Release()
		return err
	}
	if l.journal, err = openJournal(ctx, l.options.Dir, l.stored.generation+1); err != nil {
		l.alive.Release()
		return err
	}
	if err = l.recover(ctx); err != nil {
		l.alive.Release()
		return errors.Join(err, l.journal.close())
	}
	return nil
}

func (l *Ledger) recover(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.checkPos(ctx); err != nil {
		return err
	}
	if err := l.lock(ctx); err != nil {
		return err
	}
	defer l.journal.unlock()
	return l.reap()
}

// checkPos checks for damage before the journal is read for the first time: what
// seems to be a torn record may be where the end was lost.
func (l *Ledger) checkPos(ctx context.Context) error {
	if err := l.journal.setLock(ctx); err != nil {
		return err
	}
	defer l.journal.unlock()
	at, err := l.storedPos(ctx)
	if err != nil {
		return err
	}
	return checkFile(l.journal.path, at)
}

func ownerLease(owner string) string { return "usage:" + owner }

// lock takes the journal and brings the state up to date; l.mu is held.
func (l *Ledger) lock(ctx context.Context) error {
	if l.closed {
		return ErrClosed
	}
	return l.journal.lock(ctx, l.state)
}

// lag is how many bytes of the journal are not known to be in SQLite.
func (l *Ledger) lag() int64 {
	return l.journal.position - l.stored.in(l.journal.head.generation)
}

// write appends to the journal and to the state; the lock is held.
func (l *Ledger) write(records ...*record) error {
	if len(records) == 0 {
		return nil
	}
	if err := l.journal.append(records...); err != nil {
		return err
	}
	for _, r := range records {
		l.state.apply(r)
	}
	return nil
}

// reap charges what dead processes had reserved, in full: what the upstream did is
// not known. Reconciliation puts the true figure in its place.
func (l *Ledger) reap() error {
	l.reaped = time.Now()
	dead := map[string]bool{l.owner: false}
	var ends []*record
	for _, held := range l.state.open {
		if _, known := dead[held.Owner]; !known {
			dead[held.Owner] = l.isDead(held.Owner)
		}
		if dead[held.Owner] {
			end := *held
			end.Kind, end.Flags, end.Model = kindSettle, held.Flags|flagCrashed|flagEstimated, held.ModelAsked
			ends = append(ends, &end)
		}
	}
	if len(ends) > 0 {
		l.options.Logger.Warn("calls of a process that ended without settling them are charged in full", "calls", len(ends))
	}
	return l.write(ends...)
}

func (l *Ledger) isDead(owner string) bool {
	lock, err := l.options.Locks.TryHold(ownerLease(owner))
	lock.Release()
	return err == nil
}

// Spent is what was spent in a scope, over all processes.
func (l *Ledger) Spent(ctx context.Context, scope Scope, key string) (Charge, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.lock(ctx); err != nil {
		return Charge{}, err
	}
	defer l.journal.unlock()
	t, err := l.total(ctx, scopeKey{scope, key})
	if err != nil {
		return Charge{}, err
	}
	return t.spent, nil
}

// Load is how many calls are under way, as far as this process has read, and
// how many bytes of the journal wait for SQLite.
func (l *Ledger) Load() (reservations int, lag int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.state.open), l.lag()
}

// Close moves everything into SQLite and ends the background work. Open
// reservations stay: the next process that opens the ledger charges them.
func (l *Ledger) Close() error {
	l.mu.Lock()
	again := l.closing
	l.closing = true
	l.mu.Unlock()
	if again {
		return nil
	}
	close(l.stop)
	<-l.done
	err := l.Flush(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.alive.Release()
	return errors.Join(err, l.journal.close())
}
