package secret

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Harden keeps this process's memory from others of the same user, and out of
// core dumps: it cannot be traced, nor its /proc files read, nor does it leave
// a core. It is for programs that hold keys. Without root, children with a user
// namespace are started by StartChild afterwards.
func Harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep this process's memory private: %w", err)
	}
	return forbidCores()
}

// starting is held while StartChild has the process dumpable.
var starting sync.Mutex

// StartChild calls start, which starts a child with a user namespace. Without root
// that takes the /proc files of the child, which belong to root in a hardened
// process: until start returns, processes of the same user can trace this one.
func StartChild(start func() error) (err error) {
	if os.Geteuid() == 0 {
		return start()
	}
	starting.Lock()
	defer starting.Unlock()
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil || dumpable != 0 {
		return errors.Join(err, start())
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)) }()
	return start()
}

// forbidCores keeps this process's memory, and that of its children, out of core
// dumps.
func forbidCores() error {
	none := unix.Rlimit{Cur: 0, Max: 0}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &none); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	return nil
}
