package setup

import (
	"errors"
	"io/fs"
	"os"
)

// maxWatchers is how many inotify instances a sandbox may have. The kernel counts them for
// the user outside too, who has 128 by default: a sandbox leaves half of them.
const maxWatchers = "64"

// setQuotas sets limits per user of this namespace. Kernels without such a limit are left
// alone.
func setQuotas() error {
	err := os.WriteFile("/proc/sys/user/max_inotify_instances", []byte(maxWatchers), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return endSharedMemory()
}

// endSharedMemory makes System V shared memory end with the last process that has it
// attached. Only user 0 of the namespace may set that: without one, because an ordinary
// user made the sandbox, such memory stays until the sandbox is stopped.
func endSharedMemory() error {
	err := os.WriteFile("/proc/sys/kernel/shm_rmid_forced", []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
