package guest

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// OpenFilesLimit returns the RLIMIT_NOFILE that the program was started with, for
// the processes that it starts. Package syscall has raised the soft limit to the
// hard one before main; it restores the original before an exec. An exec that must
// fail, as an empty path does, is therefore enough to read it.
func OpenFilesLimit() (unix.Rlimit, error) {
	_ = syscall.Exec("", []string{""}, nil)
	var original unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &original); err != nil {
		return original, err
	}
	raised := unix.Rlimit{Cur: original.Max, Max: original.Max}
	return original, unix.Setrlimit(unix.RLIMIT_NOFILE, &raised)
}
