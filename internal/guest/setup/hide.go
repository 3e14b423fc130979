package setup

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/runtime/blueprint"
)

// The flags of the only two mounts that the filter of nodes lets the guest make
// (seccomp.NodeProfile).
const (
	emptyFlags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	nullFlags  = unix.MS_BIND
)

// HideKernelFiles mounts empty files and directories over those of the kernel that tell of
// the host or reach into it, in a mount namespace of this process's own. A security module
// of the node may refuse it: then the masks are those of the node's engine alone.
func HideKernelFiles() error {
	for _, path := range blueprint.Masked() {
		switch err := hide(path); {
		case err == nil || errors.Is(err, unix.ENOENT):
		case errors.Is(err, unix.EACCES):
			return nil
		default:
			return err
		}
	}
	return nil
}

func hide(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return unix.Mount("tmpfs", path, "tmpfs", emptyFlags, "mode=0555,size=4096,nr_inodes=1")
	}
	return unix.Mount("/dev/null", path, "", nullFlags, "")
}
