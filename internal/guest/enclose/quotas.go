package enclose

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
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
