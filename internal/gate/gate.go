package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
)

// Gate is an open gate. It holds the lock of its directory until Close, so that no
// other gate works on the same changes. Its methods are called by one goroutine.
type Gate struct {
	opt       Options
	limits    Limits
	protected *contentpolicy.Protected
	ignore    []contentpolicy.Pattern
	lock      *filelock.Lock
	journal   *journal
	decided   *decisions
}

const (
	lockName   = "lock"
	stageName  = "stage"
	undoName   = "undo"
	lockWait   = 30 * time.Second
	dirMode    = 0o700
	busyAdvice = "Wait until the other one has ended, and try again."
)

// ErrBusy means that another gate works on the same changes.
var ErrBusy = errors.New("another sync is at work on these changes")

// Open opens the gate of a directory, waits for another one to end, and finishes or
// takes back what an earlier process was applying when it ended.
func Open(ctx context.Context, opt Options) (*Gate, error) {
	for _, dir := range []string{opt.Dir, filepath.Join(opt.Dir, stageName), filepath.Join(opt.Dir, undoName)} {
		if err := os.MkdirAll(dir, dirMode); err != nil {
			return nil, err
		}
	}
	locks, err := filelock.Open(filepath.Join(opt.Dir, lockName))
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock, err := locks.Hold(waiting, "gate")
	if errors.Is(err, filelock.ErrHeld) {
		return nil, errhint.With(ErrBusy, busyAdvice)
	} else if err != nil {
		return nil, err
	}
	g := &Gate{opt: opt, limits: opt.Limits.withDefaults(), lock: lock}
	if err := g.load(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// load reads the gate's files and recovers.
func (g *Gate) load(ctx context.Context) (err error) {
	g.protected = contentpolicy.NewProtected(append(append([]contentpolicy.Protection{}, g.opt.Protected...), Protections()...))
	for _, pattern := range g.opt.Ignore {
		g.ignore = append(g.ignore, contentpolicy.NewPattern(pattern))
	}
	if g.journal, err = openJournal(filepath.Join(g.opt.Dir, journalName)); err != nil {
		return err
	}
	if g.decided, err = g.loadDecisions(); err != nil {
		return err
	}
	if err := g.recover(ctx); err != nil {
		return fmt.Errorf("take back what was not finished: %w", err)
	}
	return g.prune()
}

// Close releases the lock.
func (g *Gate) Close() error {
	var err error
	if g.journal != nil {
		err = g.journal.close()
	}
	g.lock.Release()
	return err
}

// testHook calls the function that tests stop the gate at a step with.
func (g *Gate) testHook(step string) {
	if g.opt.checkpoint != nil {
		g.opt.checkpoint(step)
	}
}

// record writes an event to the audit log.
func (g *Gate) record(e audit.FileEvent) {
	if g.opt.Record == nil {
		return
	}
	e.Time, e.Subject = time.Now(), g.opt.Subject
	g.opt.Record(&e)
}

func (g *Gate) undoDir(id string) string { return filepath.Join(g.opt.Dir, undoName, id) }

func (g *Gate) stagePath(sum string) string { return filepath.Join(g.opt.Dir, stageName, sum) }
