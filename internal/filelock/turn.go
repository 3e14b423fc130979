package filelock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// line is how many may wait for one name in turn.
const line = 1024

// ErrCrowded means that too many wait already.
var ErrCrowded = fmt.Errorf("more than %d wait for it", line)

// HoldInTurn takes name alone, after everybody who asked for it in turn before.
// If it has to wait, waiting is told once how many are ahead.
//
// The places of a line are the bytes after the name's own, which is its head.
// Whoever comes takes the one behind the last that is taken, and moves up when
// those before it are free, however their holders went. Nobody can be overtaken:
// coming and moving up are done by one at a time.
func (b *Locks) HoldInTurn(ctx context.Context, name string, waiting func(ahead int)) (*Lease, error) {
	p, err := b.join(ctx, name)
	if err != nil || p.at == 0 {
		return p.own, err
	}
	if waiting != nil {
		waiting(int(p.at))
	}
	for pause := firstWait; p.at > 0; pause = min(2*pause, longestWait) {
		select {
		case <-ctx.Done():
			p.own.Release()
			return nil, fmt.Errorf("lock %q: %w (%w)", name, ErrHeld, context.Cause(ctx))
		case <-time.After(pause):
		}
		if err := p.advance(ctx); err != nil {
			p.own.Release()
			return nil, err
		}
	}
	return p.own, nil
}

// position is a place in a line.
type position struct {
	book *Locks
	name string
	own  *Lease
	at   int64 // 0 is the head
}

// join takes the place behind the last.
func (b *Locks) join(ctx context.Context, name string) (p position, err error) {
	alone, err := b.Hold(ctx, name+" line")
	if err != nil {
		return p, err
	}
	defer alone.Release()
	p = position{book: b, name: name}
	for taken := int64(0); taken >= 0; {
		if taken, err = b.taken(name, p.at); err != nil {
			return p, err
		}
		if taken >= 0 {
			p.at = taken + 1
		}
	}
	if p.at >= line {
		return p, fmt.Errorf("lock %q: %w", name, ErrCrowded)
	}
	p.own, err = b.tryAt(name, unix.F_WRLCK, p.at)
	return p, err
}

// advance moves up as far as places are free.
func (p *position) advance(ctx context.Context) error {
	if taken, err := p.book.taken(p.name, p.at-1); err != nil || taken == p.at-1 {
		return err
	}
	alone, err := p.book.Hold(ctx, p.name+" line")
	if err != nil {
		return err
	}
	defer alone.Release()
	for p.at > 0 {
		next, err := p.book.tryAt(p.name, unix.F_WRLCK, p.at-1)
		if errors.Is(err, ErrHeld) {
			return nil
		}
		if err != nil {
			return err
		}
		p.own.Release()
		p.own, p.at = next, p.at-1
	}
	return nil
}

// taken is the first place from at on that somebody has; -1 if nobody has one.
func (b *Locks) taken(name string, at int64) (int64, error) {
	if at >= line {
		return -1, nil
	}
	f, err := b.open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: Place(name) + at, Len: line - at}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return 0, fmt.Errorf("lock %q: %w", name, err)
	}
	if lock.Type == unix.F_UNLCK {
		return -1, nil
	}
	return lock.Start - Place(name), nil
}
