package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Kernel says for every ring that is tried in a sandbox what this host can give
// one. A gap is a ring that cannot be built here at all; a note, one that is
// weaker, or that some users cannot have. Each comes with the remedy.
func Kernel() []Check {
	h := host{"/"}
	return slices.Concat(h.rings(), []Check{kernelFence(), kernelMounts(), kernelBinds()}, h.resources())
}

// host is where the files of a kernel are; in tests one that does not exist.
type host struct{ root string }

func (h host) rings() []Check {
	return []Check{h.user(), h.privileges(), h.calls(), h.namespaces(), h.unprivileged(), h.network(), h.processes(), h.guest(), h.overlay()}
}

func (h host) resources() []Check { return []Check{h.limits(), h.sockets()} }

func (h host) path(name string) string { return filepath.Join(h.root, name) }

func (h host) has(name string) bool {
	_, err := os.Lstat(h.path(name))
	return err == nil
}

func (h host) read(name string) string {
	text, _ := os.ReadFile(h.path(name))
	return strings.TrimSpace(string(text))
}

// enough is a check of something that no sandbox can do without.
func enough(ring, name string, holds bool, found, missing, remedy string) Check {
	c := compare(ring, name, holds, found, yesNo(holds, found, missing))
	if !holds {
		c.Remedy = remedy
	}
	return c
}

// better is a check of something that a sandbox is weaker without, or that only
// some need.
func better(ring, name string, holds bool, found, missing, remedy string) Check {
	c := enough(ring, name, holds, found, missing, remedy)
	if !holds {
		c.Status = Note
	}
	return c
}

func (h host) user() Check {
	return enough("user", "mapping", h.has("/proc/self/uid_map") && h.has("/proc/self/setgroups"), "users inside can be mapped to others outside",
		"users inside cannot be mapped", "use a kernel with CONFIG_USER_NS")
}

func (h host) privileges() Check {
	status := h.read("/proc/self/status")
	return enough("privileges", "to be given up", strings.Contains(status, "NoNewPrivs:") && strings.Contains(status, "CapAmb:"),
		"capabilities and new privileges can be given up", "not every privilege can be given up", "use Linux 4.10 or newer")
}

// calls asks for the answers that the filter gives.
func (h host) calls() Check {
	actions := strings.Fields(h.read("/proc/sys/kernel/seccomp/actions_avail"))
	return enough("system calls", "filter", slices.Contains(actions, "errno") && slices.Contains(actions, "kill_process"),
		"the kernel filters them", "the kernel does not filter them", "use a kernel with CONFIG_SECCOMP_FILTER, 4.14 or newer")
}

func (h host) namespaces() Check {
	var missing []string
	for _, kind := range kinds() {
		if kind != "time" && !h.has("/proc/self/ns/"+kind) {
			missing = append(missing, kind)
		}
	}
	return enough("namespaces", "namespaces", len(missing) == 0, "all kinds are there", "missing: "+listed(missing), "use a kernel with CONFIG_NAMESPACES and all kinds below it")
}

// unprivileged looks for what keeps ordinary users from making namespaces.
func (h host) unprivileged() Check {
	var obstacles []string
	for _, setting := range []struct {
		name     string
		zeroIsNo bool
	}{{"user/max_user_namespaces", true}, {"kernel/unprivileged_userns_clone", true}, {"kernel/apparmor_restrict_unprivileged_userns", false}} {
		if value := h.read("/proc/sys/" + setting.name); value != "" && (value == "0") == setting.zeroIsNo {
			obstacles = append(obstacles, strings.ReplaceAll(setting.name, "/", ".")+"="+value)
		}
	}
	return better("namespaces", "without root", len(obstacles) == 0, "users without privileges may make them",
		"users without privileges may not make them: "+listed(obstacles), "atoll doctor --fix, or use an engine")
}

// overlay asks for what lays layers of images over each other. A module may be
// loaded when it is first needed.
func (h host) overlay() Check {
	known := strings.Contains(h.read("/proc/filesystems"), "\toverlay") || h.has("/sys/module/overlay")
	return better("files", "layers", known, "layers can be laid over each other", "overlay is not loaded: sandboxes need an engine", "modprobe overlay, or use a kernel with CONFIG_OVERLAY_FS")
}

func (h host) network() Check {
	return enough("network", "apart", h.has("/proc/self/ns/net"), "a network of its own, with nothing but loopback, is possible", "no network can be kept apart", "use a kernel with CONFIG_NET_NS")
}

func (h host) processes() Check {
	return enough("processes", "apart", h.has("/proc/self/ns/pid"), "processes of the host can be kept out of sight", "processes cannot be kept apart", "use a kernel with CONFIG_PID_NS")
}

// guest looks at a setting that makes programs open to others that nobody may
// read: the guest's own protection is such a file.
func (h host) guest() Check {
	return better("guest", "traceable", h.read("/proc/sys/fs/suid_dumpable") != "1", "programs that cannot be read cannot be traced either",
		"fs.suid_dumpable=1: probes in a sandbox can be traced by what runs beside them", "sysctl -w fs.suid_dumpable=0")
}

// limits looks for the controllers, of either version.
func (h host) limits() Check {
	second := strings.Fields(h.read("/sys/fs/cgroup/cgroup.controllers"))
	var missing []string
	for _, controller := range []string{"cpu", "memory", "pids"} {
		if !h.has("/sys/fs/cgroup/"+controller) && !slices.Contains(second, controller) {
			missing = append(missing, controller)
		}
	}
	version := yesNo(len(second) > 0, "version 2", "version 1")
	return better("limits", "controllers", len(missing) == 0, "processors, memory and processes can be limited: control groups of "+version,
		"missing: "+listed(missing)+"; limits of these are refused", "mount the control groups, and boot with cgroup_enable=memory where memory is missing")
}

// sockets warns of engines that take orders from every user of the host.
func (h host) sockets() Check {
	const others = 0o002
	var open []string
	for _, path := range []string{"/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock"} {
		if info, err := os.Stat(h.path(path)); err == nil && info.Mode().Perm()&others != 0 {
			open = append(open, fmt.Sprintf("%s (%v)", path, info.Mode().Perm()))
		}
	}
	return better("devices", "engine sockets", len(open) == 0, "no engine's socket is open to every user",
		"an engine takes orders from every user: "+listed(open), "chmod o-w the socket")
}
