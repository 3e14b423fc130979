package setup

import (
	"errors"
	"io/fs"
	"os"
)

// maxWatchers is how many inotify instances a sandbox may have. The kernel
// counts them for the user who made the sandbox too, who has 128 by default: a
// sandbox that takes all of its own leaves him the rest.
const maxWatchers = "64"

// setQuotas bounds what the kernel counts by user, for the users of this
// namespace alone. A kernel that does not count has nothing to bound.
func setQuotas() error {
	err := os.WriteFile("/proc/sys/user/max_inotify_instances", []byte(maxWatchers), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return endSharedMemory()
}

// endSharedMemory has shared memory that no process has attached end with the
// last process that had, as other memory does. The setting belongs to user 0 of
// the namespace: where there is none, because an ordinary user made the sandbox,
// such memory stays until the sandbox is stopped.
func endSharedMemory() error {
	err := os.WriteFile("/proc/sys/kernel/shm_rmid_forced", []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
