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

// ErrHeld means that another holder has the name in a conflicting way.
var ErrHeld = errors.New("held by another process or task")

// How long a waiter sleeps between two tries. The kernel's own waiting cannot
// be cancelled by a context, so waiting is polling.
const (
	firstWait   = 500 * time.Microsecond
	longestWait = 25 * time.Millisecond
)

// Locks is the file that carries the locks.
type Locks struct{ path string }

// Open returns the locks of the file at path, making it if needed.
func Open(path string) (*Locks, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	return &Locks{path: path}, f.Close()
}

// Existing returns the locks of the file at path without making it: taking a name
// fails if the file does not exist.
func Existing(path string) *Locks { return &Locks{path: path} }

// Lock is one held lock. Release ends it; so does the end of the process.
type Lock struct{ file *os.File }

// Release unlocks the name. It may be called more than once. It unlocks before it
// closes the file: a child between fork and exec has the file open too.
func (l *Lock) Release() {
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
func (b *Locks) Share(ctx context.Context, name string) (*Lock, error) {
	return b.wait(ctx, name, unix.F_RDLCK)
}

// Hold takes name alone, waiting for holders and sharers to finish.
func (b *Locks) Hold(ctx context.Context, name string) (*Lock, error) {
	return b.wait(ctx, name, unix.F_WRLCK)
}

// TryHold takes name alone or returns ErrHeld at once.
func (b *Locks) TryHold(name string) (*Lock, error) {
	return b.try(name, unix.F_WRLCK)
}

// TryShare takes name together with other sharers or returns ErrHeld at once.
func (b *Locks) TryShare(name string) (*Lock, error) {
	return b.try(name, unix.F_RDLCK)
}

func (b *Locks) wait(ctx context.Context, name string, kind int16) (*Lock, error) {
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
func (b *Locks) try(name string, kind int16) (*Lock, error) { return b.tryAt(name, kind, 0) }

// tryAt is try for one of the bytes after the name's own.
func (b *Locks) tryAt(name string, kind int16, after int64) (*Lock, error) {
	f, err := b.open()
	if err != nil {
		return nil, err
	}
	lock := unix.Flock_t{Type: kind, Start: offset(name) + after, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			return nil, fmt.Errorf("lock %q: %w", name, ErrHeld)
		}
		return nil, fmt.Errorf("lock %q: %w", name, err)
	}
	return &Lock{f}, nil
}

func (b *Locks) open() (*os.File, error) {
	f, err := os.OpenFile(b.path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	return f, nil
}

// offset maps a name to its byte: 62 bits of a hash, so that two names do not
// collide by accident and the offset is positive.
func offset(name string) int64 {
	sum := sha256.Sum256([]byte(name))
	return int64(binary.BigEndian.Uint64(sum[:8]) & (math.MaxInt64 >> 1))
}
