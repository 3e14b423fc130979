package verify

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Kernel says ring by ring what this host's kernel can give a sandbox. A gap is
// a ring that cannot be built here at all; a note, one that is weaker.
func Kernel() []Check {
	return []Check{
		kernelPrivileges(), kernelCalls(), kernelNamespaces(), kernelUsers(), kernelFence(), kernelMounts(), kernelLimits(), hostSockets(),
	}
}

func kernelPrivileges() Check {
	status, err := os.ReadFile("/proc/self/status")
	has := err == nil && bytes.Contains(status, []byte("NoNewPrivs:")) && bytes.Contains(status, []byte("CapAmb:"))
	return compare("privileges", "to be given up", has, "every capability set, new privileges", yesNo(has, "capabilities and new privileges can be given up", "not every privilege can be given up"))
}

// kernelCalls asks for the answers that the filter gives.
func kernelCalls() Check {
	text, _ := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	actions := strings.Fields(string(text))
	has := slices.Contains(actions, "errno") && slices.Contains(actions, "kill_process")
	return compare("system calls", "filter", has, "the kernel filters them", yesNo(has, "the kernel filters them", "the kernel does not filter them; use one with CONFIG_SECCOMP_FILTER"))
}

func kernelNamespaces() Check {
	var missing []string
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		if _, err := os.Lstat("/proc/self/ns/" + kind); err != nil {
			missing = append(missing, kind)
		}
	}
	return compare("namespaces", "namespaces", len(missing) == 0, "all kinds", yesNo(len(missing) == 0, "all kinds are there", "missing: "+listed(missing)))
}

// kernelUsers looks for what keeps ordinary users from making namespaces.
func kernelUsers() Check {
	var obstacles []string
	for path, open := range map[string]string{
		"/proc/sys/user/max_user_namespaces": "", "/proc/sys/kernel/unprivileged_userns_clone": "1", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "0",
	} {
		text, err := os.ReadFile(path)
		value := strings.TrimSpace(string(text))
		if err == nil && (open == "" && value == "0" || open != "" && value != open) {
			obstacles = append(obstacles, filepath.Base(path)+"="+value)
		}
	}
	slices.Sort(obstacles)
	c := compare("namespaces", "without root", len(obstacles) == 0, "users may make them", yesNo(len(obstacles) == 0, "users without privileges may make them", "users without privileges may not make them: "+listed(obstacles)))
	if c.Status == Gap {
		c.Status = Note // root and engines are not held up
	}
	return c
}

// kernelFence asks for Landlock, the second fence around files.
func kernelFence() Check {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return note("files", "second fence", "Landlock", "this kernel has no Landlock: the first fence stands alone")
	}
	return compare("files", "second fence", true, "Landlock", "a second fence: Landlock, version "+strconv.Itoa(int(version)))
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
	const name, promised = "mounts on the way", "noticed"
	switch {
	case openat2:
		return compare("files", name, true, promised, "file tools notice every mount on the way")
	case mountIDs:
		return compare("files", name, true, promised, "file tools notice every mount on the way, by its id: there is no openat2")
	}
	return note("files", name, promised, "this kernel has neither openat2 nor mount ids in statx: file tools do not notice a mount of the same file system below a workspace")
}

// kernelLimits looks for the controllers, of either version.
func kernelLimits() Check {
	second, _ := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	var missing []string
	for _, controller := range []string{"cpu", "memory", "pids"} {
		_, err := os.Stat("/sys/fs/cgroup/" + controller)
		if err != nil && !slices.Contains(strings.Fields(string(second)), controller) {
			missing = append(missing, controller)
		}
	}
	if len(missing) > 0 {
		return note("limits", "controllers", "cpu, memory, pids", "missing: "+listed(missing)+"; limits of these are refused")
	}
	return compare("limits", "controllers", true, "cpu, memory, pids", "processors, memory and processes can be limited")
}

// hostSockets warns of engines that take orders from every user of the host.
func hostSockets() Check {
	const others = 0o002
	var open []string
	for _, path := range []string{"/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock"} {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&others != 0 {
			open = append(open, fmt.Sprintf("%s (%v)", path, info.Mode().Perm()))
		}
	}
	if len(open) > 0 {
		return note("devices", "engine sockets", "not open to every user", "an engine takes orders from every user: "+listed(open))
	}
	return compare("devices", "engine sockets", true, "not open to every user", "no engine's socket is open to every user")
}
