package filelock

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// IsHeld reports whether a lock is held or shared, by this process or another. It
// takes no lock itself.
func (b *Locks) IsHeld(name string) (bool, error) { return b.bars(name, unix.F_WRLCK) }

// IsHeldAlone reports whether a lock is held, not shared, by this process or another. It
// takes no lock itself.
func (b *Locks) IsHeldAlone(name string) (bool, error) { return b.bars(name, unix.F_RDLCK) }

// WhichHeld is IsHeld for many names, with one opening of the file. It returns those that
// are held.
func (b *Locks) WhichHeld(names []string) (map[string]bool, error) {
	held := map[string]bool{}
	f, err := b.open()
	if err != nil {
		return held, err
	}
	defer f.Close()
	for _, name := range names {
		is, err := barsIn(f, name, unix.F_WRLCK)
		if err != nil {
			return held, err
		}
		if is {
			held[name] = true
		}
	}
	return held, nil
}

// bars reports whether what is there bars a lock of a kind.
func (b *Locks) bars(name string, kind int16) (bool, error) {
	f, err := b.open()
	if err != nil {
		return false, err
	}
	defer f.Close()
	return barsIn(f, name, kind)
}

func barsIn(f *os.File, name string, kind int16) (bool, error) {
	lock := unix.Flock_t{Type: kind, Start: offset(name), Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, fmt.Errorf("lock %q: %w", name, err)
	}
	return lock.Type != unix.F_UNLCK, nil
}
