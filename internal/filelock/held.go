package filelock

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// IsHeld reports whether a lock is held or shared, by this process or another. It
// takes no lock itself.
func (b *Locks) IsHeld(name string) (bool, error) { return b.bars(name, unix.F_WRLCK) }

// IsHeldAlone reports whether a lock is held, not shared, by this process or another. It
// takes no lock itself.
func (b *Locks) IsHeldAlone(name string) (bool, error) { return b.bars(name, unix.F_RDLCK) }

// bars reports whether what is there bars a lock of a kind.
func (b *Locks) bars(name string, kind int16) (bool, error) {
	f, err := b.open()
	if err != nil {
		return false, err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: kind, Start: offset(name), Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, fmt.Errorf("lock %q: %w", name, err)
	}
	return lock.Type != unix.F_UNLCK, nil
}
