package grant

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
)

// Place is the inside of a sandbox, as far as grants concern it.
type Place interface {
	// OpenGrant ends whatever was started under another grant, makes sure that it
	// is gone, and from then on starts processes under this one.
	OpenGrant(ctx context.Context, id string) error
	// EndGrant ends everything that was started under the grant, and starts
	// nothing under it any more. Nil means that it is gone.
	EndGrant(ctx context.Context, id string) error
}

// Locks are names that one process of the host can hold. A *filelock.Locks is some.
type Locks interface {
	TryHold(name string) (*filelock.Lease, error)
}

var (
	// ErrOpen is a sandbox that has an open grant already.
	ErrOpen = errors.New("a grant is open already")
	// ErrNone is a caller in a sandbox that has no open grant.
	ErrNone = errors.New("no grant is open")
	// ErrStranger is a caller that the open grant is not about.
	ErrStranger = errors.New("the caller has no part in the open grant")
)

// endPatience bounds the end of a grant that nobody waits for.
const endPatience = 30 * time.Second

// Desk is where the grants of one sandbox are opened.
type Desk struct {
	sandbox string
	place   Place
	locks   Locks

	mu    sync.Mutex
	taken bool            // a grant is open, opening or ending
	run   string          // whose, if so
	open  *Grant          // nil: none
	lease *filelock.Lease // held while it is
}

// NewDesk returns the desk of a sandbox. Desks of the same sandbox, here or in
// other processes, share its one grant through locks.
func NewDesk(sandbox string, place Place, locks Locks) *Desk {
	return &Desk{sandbox: sandbox, place: place, locks: locks}
}

// Open opens a grant, or returns an error that wraps ErrOpen and names the run
// that holds the sandbox.
func (d *Desk) Open(ctx context.Context, terms *Terms) (*Grant, error) {
	if err := terms.check(time.Now()); err != nil {
		return nil, err
	}
	if err := d.occupy(terms.Run); err != nil {
		return nil, err
	}
	held, err := d.locks.TryHold("grant " + d.sandbox)
	if errors.Is(err, filelock.ErrHeld) {
		err = fmt.Errorf("sandbox %s: %w: by another process", d.sandbox, ErrOpen)
	}
	if err != nil {
		d.vacate(nil)
		return nil, err
	}
	g := newGrant(d, terms)
	if err := d.place.OpenGrant(ctx, g.id); err != nil {
		g.cancel(err)
		d.vacate(held)
		return nil, fmt.Errorf("open a grant in sandbox %s: %w", d.sandbox, err)
	}
	d.publish(g, held)
	return g, nil
}

func newGrant(d *Desk, terms *Terms) *Grant {
	g := &Grant{desk: d, id: rand.Text(), terms: *terms, ended: make(chan struct{}), conns: map[*bound]struct{}{}}
	g.terms.Models = slices.Clone(terms.Models)
	base, cancel := context.WithCancelCause(context.Background())
	ctx, release := context.WithDeadlineCause(base, terms.Until, ErrExpired)
	g.ctx, g.cancel = ctx, func(why error) { cancel(why); release() }
	return g
}

// occupy makes the desk this run's, or says whose it is.
func (d *Desk) occupy(run string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken {
		return fmt.Errorf("sandbox %s: %w: by run %q", d.sandbox, ErrOpen, d.run)
	}
	d.taken, d.run = true, run
	return nil
}

// vacate makes the desk free again.
func (d *Desk) vacate(held *filelock.Lease) {
	held.Release()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken, d.open, d.lease = false, nil, nil
}

// publish makes the grant the open one, and has it end in time.
func (d *Desk) publish(g *Grant, held *filelock.Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open, d.lease = g, held
	context.AfterFunc(g.ctx, func() { _ = g.end(ErrExpired) })
}

// clear ends what runs under a grant and makes the desk free. Should something
// be left in spite of all, the next grant does not open before it is gone.
func (d *Desk) clear(g *Grant) error {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	err := d.place.EndGrant(ctx, g.id)
	d.mu.Lock()
	held := d.lease
	d.mu.Unlock()
	d.vacate(held)
	if err != nil {
		return fmt.Errorf("end a grant in sandbox %s: %w", d.sandbox, err)
	}
	return nil
}

// Present returns the grant that is open, or nil.
func (d *Desk) Present() *Grant {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil || d.open.Err() != nil {
		return nil
	}
	return d.open
}

// Find returns the open grant if it has this id. It is what a gate asks.
func (d *Desk) Find(id string) (*Grant, error) {
	g := d.Present()
	switch {
	case g == nil:
		return nil, ErrNone
	case id == "":
		return nil, fmt.Errorf("%w: it was started under no grant", ErrStranger)
	case subtle.ConstantTimeCompare([]byte(id), []byte(g.id)) == 0:
		return nil, fmt.Errorf("%w: it was started under another grant", ErrStranger)
	}
	return g, nil
}
