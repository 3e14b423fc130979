// Package filelock gives named locks that hold across processes and end with
// their holder, however it ends.
//
// All names share one file: a name is a byte range of it, chosen by hash, and a
// lock is an open-file-description lock on that range. So ten thousand names
// leave no ten thousand lock files behind, and kill -9 leaves nothing locked.
// The package knows no sandbox and no database.
package filelock

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld means that somebody else holds the name in a conflicting way.
var ErrHeld = errors.New("held by another process or task")

// How long a waiter sleeps between two tries. The kernel's own waiting cannot
// be cancelled by a context, so waiting is polling.
const (
	firstWait   = 500 * time.Microsecond
	longestWait = 25 * time.Millisecond
)

// Locks is the file that carries the locks.
type Locks struct{ path string }

// Open returns the book at path, making the file if needed.
func Open(path string) (*Locks, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	return &Locks{path: path}, f.Close()
}

// Existing returns the book at path, which somebody has opened before. Whoever
// takes a name from it finds out if nobody has.
func Existing(path string) *Locks { return &Locks{path: path} }

// Lease is one held lock. Release ends it; so does the end of the process.
type Lease struct{ file *os.File }

// Release gives the name back. It may be called more than once. The lock is
// given back before the file: a child that was forked a moment ago, and has not
// become another program yet, has the file too.
func (l *Lease) Release() {
	if l == nil {
		return
	}
	if raw, err := l.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.FcntlFlock(fd, unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK})
		})
	}
	_ = l.file.Close()
}

// Share takes name together with other sharers, waiting for a holder to finish.
func (b *Locks) Share(ctx context.Context, name string) (*Lease, error) {
	return b.wait(ctx, name, unix.F_RDLCK)
}

// Hold takes name alone, waiting for holders and sharers to finish.
func (b *Locks) Hold(ctx context.Context, name string) (*Lease, error) {
	return b.wait(ctx, name, unix.F_WRLCK)
}

// TryHold takes name alone or returns ErrHeld at once.
func (b *Locks) TryHold(name string) (*Lease, error) {
	return b.try(name, unix.F_WRLCK)
}

func (b *Locks) wait(ctx context.Context, name string, kind int16) (*Lease, error) {
	for pause := firstWait; ; pause = min(2*pause, longestWait) {
		l, err := b.try(name, kind)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %q: %w (%w)", name, err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// try opens the file anew: the lock belongs to the open file description, so
// two leases of one process conflict just as those of two processes do.
func (b *Locks) try(name string, kind int16) (*Lease, error) { return b.tryAt(name, kind, 0) }

// tryAt is try for one of the bytes after the name's own.
func (b *Locks) tryAt(name string, kind int16, after int64) (*Lease, error) {
	f, err := b.open()
	if err != nil {
		return nil, err
	}
	lock := unix.Flock_t{Type: kind, Start: Place(name) + after, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			return nil, fmt.Errorf("lock %q: %w", name, ErrHeld)
		}
		return nil, fmt.Errorf("lock %q: %w", name, err)
	}
	return &Lease{f}, nil
}

func (b *Locks) open() (*os.File, error) {
	f, err := os.OpenFile(b.path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	return f, nil
}

// Place maps a name to its byte. 62 bits keep an accidental meeting of two
// names out of reach, and the offset positive.
func Place(name string) int64 {
	sum := sha256.Sum256([]byte(name))
	return int64(binary.BigEndian.Uint64(sum[:8]) & (math.MaxInt64 >> 1))
}
