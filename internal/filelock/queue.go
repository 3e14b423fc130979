package filelock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// maxWaiting is how many holders may wait for one name in turn.
const maxWaiting = 1024

// ErrTooManyWaiting means that maxWaiting holders wait already.
var ErrTooManyWaiting = fmt.Errorf("more than %d wait for it", maxWaiting)

// HoldInTurn takes name alone, in the order of the calls. If it has to wait, waiting
// is called once with the number of holders ahead.
//
// The slots of the queue are the bytes after the name's own, which is its head. A new
// holder locks the slot behind the last locked one, and moves up when the slots before
// it are free, however their holders ended. Joining and moving up are serialised, so
// no holder is overtaken.
func (b *Locks) HoldInTurn(ctx context.Context, name string, waiting func(ahead int)) (*Lock, error) {
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

// queueSlot is a position in the queue.
type queueSlot struct {
	book *Locks
	name string
	own  *Lock
	at   int64 // 0 is the head
}

// join locks the slot behind the last locked one.
func (b *Locks) join(ctx context.Context, name string) (p queueSlot, err error) {
	alone, err := b.Hold(ctx, name+" line")
	if err != nil {
		return p, err
	}
	defer alone.Release()
	p = queueSlot{book: b, name: name}
	for taken := int64(0); taken >= 0; {
		if taken, err = b.taken(name, p.at); err != nil {
			return p, err
		}
		if taken >= 0 {
			p.at = taken + 1
		}
	}
	if p.at >= maxWaiting {
		return p, fmt.Errorf("lock %q: %w", name, ErrTooManyWaiting)
	}
	p.own, err = b.tryAt(name, unix.F_WRLCK, p.at)
	return p, err
}

// advance moves up as far as slots are free.
func (p *queueSlot) advance(ctx context.Context) error {
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

// taken returns the first locked slot from at on; -1 if there is none.
func (b *Locks) taken(name string, at int64) (int64, error) {
	if at >= maxWaiting {
		return -1, nil
	}
	f, err := b.open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: offset(name) + at, Len: maxWaiting - at}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return 0, fmt.Errorf("lock %q: %w", name, err)
	}
	if lock.Type == unix.F_UNLCK {
		return -1, nil
	}
	return lock.Start - offset(name), nil
}
