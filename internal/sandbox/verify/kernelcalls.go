package verify

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// What only the kernel itself can answer, by a call that changes nothing.

// kernelFence asks for Landlock, the second fence around files.
func kernelFence() Check {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return trait{"files", "second fence",
		"a second fence: Landlock, version " + strconv.Itoa(int(version)) +
			"; it does not refuse connections to sockets that a program of the host makes below a mount later",
		"this kernel has no Landlock: the first fence stands alone",
		"boot with lsm=landlock,… or use a kernel with CONFIG_SECURITY_LANDLOCK"}.wanted(errno == 0)
}

// kernelMounts asks for the two ways to notice that a path leads into another
// mount. With neither, file tools do not see one of the same file system.
func kernelMounts() Check {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS})
	if err == nil {
		_ = unix.Close(fd)
	}
	var facts unix.Statx_t
	known := unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_MNT_ID, &facts) == nil && facts.Mask&unix.STATX_MNT_ID != 0
	return mountsNoticed(err == nil || !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM), known)
}

func mountsNoticed(openat2, mountIDs bool) Check {
	found := "file tools notice every mount on the way"
	if !openat2 && mountIDs {
		found += ", by its id: there is no openat2"
	}
	return trait{"mounts", "on the way",
		found,
		"this kernel has neither openat2 nor mount ids in statx: file tools do not notice a mount of the same file system below a workspace",
		"use Linux 5.8 or newer"}.wanted(openat2 || mountIDs)
}

// kernelBinds asks for mounts by descriptor, which came with Linux 5.12.
func kernelBinds() Check {
	err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	return trait{"mounts", "by descriptor",
		"directories are mounted by descriptor, from the very file that was judged",
		"this kernel cannot mount by descriptor: sandboxes need an engine",
		"use Linux 5.12 or newer"}.wanted(!errors.Is(err, unix.ENOSYS))
}
