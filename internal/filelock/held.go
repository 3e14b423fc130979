package filelock

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// IsHeld reports whether a lock is held or shared, by this process or another. It
// takes no lock itself.
func (b *Locks) IsHeld(name string) (bool, error) {
	f, err := b.open()
	if err != nil {
		return false, err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: offset(name), Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, fmt.Errorf("lock %q: %w", name, err)
	}
	return lock.Type != unix.F_UNLCK, nil
}
