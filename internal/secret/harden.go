package secret

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Harden keeps this process's memory from others of the same user, and out of
// core dumps: it cannot be traced, nor its /proc files read, nor does it leave
// a core. It is for programs that hold keys. Without root, children that are
// given a user namespace before they are programs of their own cannot be made
// any more afterwards, since that takes the /proc files of a child.
func Harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep this process's memory private: %w", err)
	}
	return ForbidCores()
}

// ForbidCores keeps this process's memory, and that of its children, out of core
// dumps: what programs that hold keys and still make such children can do.
func ForbidCores() error {
	none := unix.Rlimit{Cur: 0, Max: 0}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &none); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	return nil
}
