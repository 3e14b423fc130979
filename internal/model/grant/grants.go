package grant

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
)

// Sandbox is the part of a sandbox that grants need. A *machine.Machine is one.
type Sandbox interface {
	// OpenGrant makes it possible to start processes under a grant. Without shared it
	// first ends every process that was started under another grant.
	OpenGrant(ctx context.Context, id string, shared bool) error
	// EndGrant ends every process that was started under the grant, and starts none
	// under it any more. Nil means that they are gone.
	EndGrant(ctx context.Context, id string) error
}

// Locks are named locks across processes. A *filelock.Locks is one.
type Locks interface {
	Hold(ctx context.Context, name string) (*filelock.Lock, error)
	Share(ctx context.Context, name string) (*filelock.Lock, error)
	TryHold(name string) (*filelock.Lock, error)
}

var (
	// ErrOtherAccount is a sandbox with an open grant of another account.
	ErrOtherAccount = errors.New("a grant of another account is open")
	// ErrNone is a caller in a sandbox that has no open grant.
	ErrNone = errors.New("no grant is open")
	// ErrStranger is a caller that was started under no open grant.
	ErrStranger = errors.New("the caller was not started under an open grant")
)

// endTimeout bounds the end of the processes of a grant.
const endTimeout = 30 * time.Second

// Grants opens the grants of one sandbox, and finds them by id. It is safe for
// concurrent use. Several Grants of one sandbox, also in other processes, keep its rule
// by locks: all grants that are open at the same time are of one account.
type Grants struct {
	name   string
	inside Sandbox
	locks  Locks

	mu   sync.Mutex
	open map[string]*Grant // by id
}

// NewGrants returns the grants of the sandbox with this name.
func NewGrants(name string, inside Sandbox, locks Locks) *Grants {
	return &Grants{name: name, inside: inside, locks: locks, open: map[string]*Grant{}}
}

// Open opens a grant beside those that are open. The error wraps ErrOtherAccount if one
// of those is of another account.
func (s *Grants) Open(ctx context.Context, terms *Terms) (*Grant, error) {
	if err := terms.check(time.Now()); err != nil {
		return nil, err
	}
	// While a grant is opened no other is: the first ends what killed processes left.
	turn, err := s.locks.Hold(ctx, "open a grant "+s.name)
	if err != nil {
		return nil, err
	}
	defer turn.Release()
	shared, err := s.checkAccount(terms.Account)
	if err != nil {
		return nil, err
	}
	held, err := s.share(ctx, terms.Account)
	if err != nil {
		return nil, err
	}
	g := newGrant(s, terms, held)
	if err := s.inside.OpenGrant(ctx, g.id, shared); err != nil {
		g.cancel(err)
		g.release()
		return nil, fmt.Errorf("open a grant in sandbox %s: %w", s.name, err)
	}
	s.add(g)
	return g, nil
}

// checkAccount reports whether another grant of the account is open, and refuses if one
// of another account is. The caller holds the turn, so the answer stays true.
func (s *Grants) checkAccount(account string) (shared bool, err error) {
	if free, err := s.isFree(s.lock()); free || err != nil {
		return false, err
	}
	free, err := s.isFree(s.accountLock(account))
	if free {
		return false, fmt.Errorf("sandbox %s: %w", s.name, ErrOtherAccount)
	}
	return true, err
}

// isFree reports whether a lock is held neither alone nor shared.
func (s *Grants) isFree(name string) (bool, error) {
	held, err := s.locks.TryHold(name)
	if errors.Is(err, filelock.ErrHeld) {
		return false, nil
	}
	held.Release()
	return err == nil, err
}

// lock is held, shared, for as long as a grant is open; so is accountLock of its account.
func (s *Grants) lock() string { return "grant " + s.name }

func (s *Grants) accountLock(account string) string {
	return "grant " + s.name + " of account " + account
}

// share takes the two locks of a grant.
func (s *Grants) share(ctx context.Context, account string) ([]*filelock.Lock, error) {
	whole, err := s.locks.Share(ctx, s.lock())
	if err != nil {
		return nil, err
	}
	own, err := s.locks.Share(ctx, s.accountLock(account))
	if err != nil {
		whole.Release()
		return nil, err
	}
	return []*filelock.Lock{whole, own}, nil
}

func newGrant(s *Grants, terms *Terms, held []*filelock.Lock) *Grant {
	g := &Grant{grants: s, id: rand.Text(), terms: *terms, locks: held, ended: make(chan struct{}), conns: map[*bound]struct{}{}}
	g.terms.Models = slices.Clone(terms.Models)
	base, cancel := context.WithCancelCause(context.Background())
	ctx, release := context.WithDeadlineCause(base, terms.Until, ErrExpired)
	g.ctx, g.cancel = ctx, func(why error) { cancel(why); release() }
	return g
}

// add makes a grant known to Find, and has it end in time.
func (s *Grants) add(g *Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[g.id] = g
	context.AfterFunc(g.ctx, func() { _ = g.end(ErrExpired) })
}

// end ends the processes of a grant and releases its locks. If some could not be ended,
// the next grant that is opened alone ends them first.
func (s *Grants) end(g *Grant) error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	err := s.inside.EndGrant(ctx, g.id)
	s.mu.Lock()
	delete(s.open, g.id)
	s.mu.Unlock()
	g.release()
	if err != nil {
		return fmt.Errorf("end a grant in sandbox %s: %w", s.name, err)
	}
	return nil
}

// Find returns the open grant with this id. A connection's id comes from the guest.
func (s *Grants) Find(id string) (*Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.open[id]
	switch {
	case g != nil && g.Err() == nil:
		return g, nil
	case len(s.open) == 0:
		return nil, ErrNone
	case id == "":
		return nil, fmt.Errorf("%w: it was started under none", ErrStranger)
	}
	return nil, fmt.Errorf("%w: its grant is not open here", ErrStranger)
}
