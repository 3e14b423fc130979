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
	return []Check{h.user(), h.privileges(), h.calls(), h.namespaces(), h.unprivileged(), h.network(), h.egress(), h.processes(), h.guest(), h.overlay()}
}

func (h host) resources() []Check { return []Check{h.limits(), h.socketBuffers(), h.sockets()} }

func (h host) path(name string) string { return filepath.Join(h.root, name) }

func (h host) has(name string) bool {
	_, err := os.Lstat(h.path(name))
	return err == nil
}

func (h host) read(name string) string {
	text, _ := os.ReadFile(h.path(name))
	return strings.TrimSpace(string(text))
}

// trait is something about a host, in words for both outcomes.
type trait struct{ ring, name, found, missing, remedy string }

// needed is a trait that no sandbox can do without.
func (t trait) needed(holds bool) Check {
	c := compare(t.ring, t.name, holds, t.found, yesNo(holds, t.found, t.missing))
	if !holds {
		c.Remedy = t.remedy
	}
	return c
}

// wanted is a trait that a sandbox is weaker without, or that only some need.
func (t trait) wanted(holds bool) Check {
	c := t.needed(holds)
	if !holds {
		c.Status = Note
	}
	return c
}

func (h host) user() Check {
	return trait{"user", "mapping",
		"users inside can be mapped to others outside",
		"users inside cannot be mapped",
		"use a kernel with CONFIG_USER_NS"}.needed(h.has("/proc/self/uid_map") && h.has("/proc/self/setgroups"))
}

func (h host) privileges() Check {
	status := h.read("/proc/self/status")
	return trait{"privileges", "to be given up",
		"capabilities and new privileges can be given up",
		"not every privilege can be given up",
		"use Linux 4.10 or newer"}.needed(strings.Contains(status, "NoNewPrivs:") && strings.Contains(status, "CapAmb:"))
}

// calls asks for the answers that the filter gives.
func (h host) calls() Check {
	actions := strings.Fields(h.read("/proc/sys/kernel/seccomp/actions_avail"))
	return trait{"system calls", "filter",
		"the kernel filters them",
		"the kernel does not filter them",
		"use a kernel with CONFIG_SECCOMP_FILTER, 4.14 or newer"}.needed(slices.Contains(actions, "errno") && slices.Contains(actions, "kill_process"))
}

func (h host) namespaces() Check {
	var missing []string
	for _, kind := range kinds() {
		if kind != "time" && !h.has("/proc/self/ns/"+kind) {
			missing = append(missing, kind)
		}
	}
	return trait{"namespaces", "namespaces",
		"all kinds are there",
		"missing: " + listed(missing),
		"use a kernel with CONFIG_NAMESPACES and all kinds below it"}.needed(len(missing) == 0)
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
	return trait{"namespaces", "without root",
		"users without privileges may make them",
		"users without privileges may not make them: " + listed(obstacles),
		"atoll doctor --fix, or use an engine"}.wanted(len(obstacles) == 0)
}

// overlay asks for what lays layers of images over each other. A module may be
// loaded when it is first needed.
func (h host) overlay() Check {
	known := strings.Contains(h.read("/proc/filesystems"), "\toverlay") || h.has("/sys/module/overlay")
	return trait{"files", "layers",
		"layers can be laid over each other",
		"overlay is not loaded: sandboxes need an engine",
		"modprobe overlay, or use a kernel with CONFIG_OVERLAY_FS"}.wanted(known)
}

func (h host) network() Check {
	return trait{"network", "apart",
		"a network of its own, with nothing but loopback, is possible",
		"no network can be kept apart",
		"use a kernel with CONFIG_NET_NS"}.needed(h.has("/proc/self/ns/net"))
}

func (h host) processes() Check {
	return trait{"processes", "apart",
		"processes of the host can be kept out of sight",
		"processes cannot be kept apart",
		"use a kernel with CONFIG_PID_NS"}.needed(h.has("/proc/self/ns/pid"))
}

// guest looks at a setting that makes programs open to others that nobody may
// read: the guest's own protection is such a file.
func (h host) guest() Check {
	return trait{"guest", "traceable",
		"programs that cannot be read cannot be traced either",
		"fs.suid_dumpable=1: probes in a sandbox can be traced by what runs beside them",
		"sysctl -w fs.suid_dumpable=0"}.wanted(h.read("/proc/sys/fs/suid_dumpable") != "1")
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
	return trait{"limits", "controllers",
		"processors, memory and processes can be limited: control groups of " + version,
		"missing: " + listed(missing) + "; limits of these are refused",
		"mount the control groups, and boot with cgroup_enable=memory where memory is missing"}.wanted(len(missing) == 0)
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
	return trait{"devices", "engine sockets",
		"no engine's socket is open to every user",
		"an engine takes orders from every user: " + listed(open),
		"chmod o-w the socket"}.wanted(len(open) == 0)
}
