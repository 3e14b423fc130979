package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/wire/findings"
)

// sound is a sandbox that keeps every promise.
func sound() *Evidence {
	e := &Evidence{
		Spec: &sandbox.Spec{
			Backend: "linux", Image: "host", User: "1000:1000", ReadOnlyRoot: true, Network: "none", CapDrop: []string{"ALL"},
			Tmpfs:   []sandbox.Tmpfs{{Target: "/tmp", Options: "size=1m"}},
			Mounts:  []sandbox.Mount{{Target: "/workspace"}, {Target: "/agent", ReadOnly: true}},
			Volumes: []sandbox.Volume{{Name: "v", Target: "/vol"}},
			Limits:  sandbox.Limits{Pids: 100, Memory: 1 << 28, MemorySwap: 1 << 29, CPUs: 0.5, IO: sandbox.IO{WriteBps: 1 << 20, ReadIOps: 50}, Ulimits: []sandbox.Ulimit{{Name: "nofile", Soft: 100, Hard: 200}}},
		},
		Guest: Guest{PID: 1},
		Host:  map[string]string{},
		Inside: &findings.Report{
			Self:       findings.Process{PID: 7, InProc: 7, UID: 1000, GID: 1000, NoNewPrivs: true, Seccomp: 2, Capabilities: map[string]string{}},
			Namespaces: map[string]string{},
			Mounts: []findings.Mount{{Target: "/", Type: "overlay", ReadOnly: true}, {Target: "/tmp", Type: "tmpfs", Options: "rw,nosuid,size=1024k"},
				{Target: "/workspace", Type: "ext4"}, {Target: "/agent", Type: "ext4", ReadOnly: true}, {Target: "/vol", Type: "ext4"},
				{Target: "/usr", Type: "ext4", ReadOnly: true}, {Target: "/.atoll/guest", Type: "ext4", ReadOnly: true}, {Target: "/.atoll/wire", Type: "ext4"},
				{Target: "/proc", Type: "proc"}, {Target: "/proc/keys", Type: "devtmpfs"}, {Target: "/sys", Type: "sysfs"}, {Target: "/dev/pts", Type: "devpts"},
				{Target: "/workspace/disk", Type: "xfs"}},
			Writable: []string{"/tmp", "/workspace", "/workspace/sub", "/vol", "/dev/shm", "/.atoll/wire"},
			Network: findings.Network{Interfaces: []string{"lo", "tunl0"}, Servers: []string{"127.0.0.1"},
				Reach: []findings.Attempt{{Name: "127.0.0.1"}}, Egress: refused("way", minEgress, "ECONNREFUSED")},
			Processes: []findings.Seen{{PID: 1, Name: "guest"}, {PID: 7, Parent: 1, Name: "guest"}},
			Limits:    findings.Limits{Pids: 132, Memory: 1 << 28, Swap: 1 << 28, CPUs: 0.5, Disks: findings.Disks{WriteBps: 1 << 20, ReadIOps: 40, Root: 2 << 30}, Resource: map[string]findings.Ulimit{"nofile": {Soft: 199, Hard: 200}}},
			Devices:   []findings.Device{{Path: "/dev/null", Major: 1, Minor: 3}, {Path: "/dev/pts/0", Major: 136}},
			Guest:     refused("way", minGuest, "EPERM"),
			Modes:     refused("mode", minModes, "EPERM"),
			Paths:     refused("path", minPaths, "EROFS"),
		},
		Outside: Outside{PID: 1, Privileges: findings.Process{NoNewPrivs: true, Seccomp: 2, Capabilities: map[string]string{}}, Namespaces: map[string]string{}},
	}
	for _, set := range capabilitySets() {
		e.Inside.Self.Capabilities[set], e.Outside.Privileges.Capabilities[set] = "0000000000000000", "0000000000000000"
	}
	for _, kind := range kinds() {
		e.Host[kind], e.Inside.Namespaces[kind], e.Outside.Namespaces[kind] = kind+":[1]", kind+":[2]", kind+":[2]"
	}
	e.Outside.Namespaces["time"] = e.Host["time"]
	e.Inside.Calls = append([]findings.Attempt{{Name: "getpid"}, {Name: "socket unix"}}, refused("call", minRefused, "EPERM")...)
	for _, address := range slices.Concat(findings.Metadata(), findings.Internet()) {
		e.Inside.Network.Reach = append(e.Inside.Network.Reach, findings.Attempt{Name: address, Error: "ENETUNREACH"})
	}
	return e
}

// refused are so many attempts in vain.
func refused(name string, count int, answer string) (attempts []findings.Attempt) {
	for n := range count {
		attempts = append(attempts, findings.Attempt{Name: fmt.Sprint(name, " ", n), Error: answer})
	}
	return attempts
}

// gaps are the broken promises, "ring: name".
func gaps(checks []Check) (broken []string) {
	for _, c := range checks {
		if c.Status == Gap {
			broken = append(broken, c.Ring+": "+c.Name)
		}
	}
	return broken
}

func TestSoundSandboxHasNoGap(t *testing.T) {
	e := sound()
	addMount(e, sandbox.RootsTarget, "ext4")
	checks := Checks(e)
	if broken := gaps(checks); len(broken) > 0 || !Holds(checks) {
		t.Errorf("gaps: %q", broken)
	}
}

// Each thing that can be wrong is noticed, and nothing else is.
func TestEveryBrokenPromiseIsAGap(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(*Evidence)
		want  string
	}{
		{"another user", func(e *Evidence) { e.Inside.Self.UID = 0 }, "user: user and group"},
		{"a capability in the bounding set", func(e *Evidence) { e.Inside.Self.Capabilities["CapBnd"] = "0000000000000020" }, "privileges: capabilities"},
		{"capabilities not told", func(e *Evidence) { delete(e.Inside.Self.Capabilities, "CapEff") }, "privileges: capabilities"},
		{"a capability that only the host sees", func(e *Evidence) { e.Outside.Privileges.Capabilities["CapPrm"] = "0000000000000020" }, "privileges: capabilities, seen from outside"},
		{"no filter, as the host sees", func(e *Evidence) { e.Outside.Privileges.Seccomp = 0 }, "privileges: confined, seen from outside"},
		{"new privileges, as the host sees", func(e *Evidence) { e.Outside.Privileges.NoNewPrivs = false }, "privileges: confined, seen from outside"},
		{"new privileges", func(e *Evidence) { e.Inside.Self.NoNewPrivs = false }, "privileges: no new privileges"},
		{"a leaked descriptor", func(e *Evidence) { e.Inside.Self.Descriptors = []string{"/"} }, "privileges: open descriptors"},
		{"no filter", func(e *Evidence) { e.Inside.Self.Seccomp = 0 }, "system calls: filter"},
		{"a call let through", func(e *Evidence) { e.Inside.Calls[5].Error = "" }, "system calls: refused calls"},
		{"a call that reached the kernel", func(e *Evidence) { e.Inside.Calls[5].Error = "EINVAL" }, "system calls: refused calls"},
		{"set-user-ID files", func(e *Evidence) { e.Inside.Modes[2].Error = "" }, "system calls: set-user-ID and set-group-ID"},
		{"set-user-ID calls that reach the kernel", func(e *Evidence) { e.Inside.Modes[0].Error = "EBADF" }, "system calls: set-user-ID and set-group-ID"},
		{"set-user-ID not tried", func(e *Evidence) { e.Inside.Modes = e.Inside.Modes[1:] }, "system calls: set-user-ID and set-group-ID"},
		{"set-user-ID files under a profile of one's own", func(e *Evidence) { e.Spec.SeccompProfile, e.Inside.Modes[1].Error = "p.json", "EBADF" }, "system calls: set-user-ID and set-group-ID"},
		{"a set-user-ID program below a mount", func(e *Evidence) { e.Below.SetID = []string{"/workspace/su"} }, "mounts: set-user-ID programs of the host"},
		{"a socket of the host below a mount", func(e *Evidence) { e.Below.Found = []string{"/workspace/a/db.sock"} }, "devices: sockets of the host below mounts"},
		{"calls not tried", func(e *Evidence) { e.Inside.Calls = e.Inside.Calls[:len(e.Inside.Calls)-1] }, "system calls: refused calls"},
		{"a usual call refused", func(e *Evidence) { e.Inside.Calls[0].Error = "EPERM" }, "system calls: usual calls"},
		{"the host's network namespace", func(e *Evidence) { e.Inside.Namespaces["net"] = e.Host["net"] }, "namespaces: namespaces"},
		{"a namespace not told", func(e *Evidence) { delete(e.Inside.Namespaces, "pid") }, "namespaces: namespaces"},
		{"the host's users", func(e *Evidence) { e.Inside.Namespaces["user"] = e.Host["user"] }, "namespaces: namespaces"},
		{"the host's clocks", func(e *Evidence) { e.Inside.Namespaces["time"] = e.Host["time"] }, "namespaces: namespaces"},
		{"another namespace than the host sees", func(e *Evidence) { e.Outside.Namespaces["mnt"] = "mnt:[3]" }, "namespaces: namespaces"},
		{"an open path of the machine", func(e *Evidence) { e.Inside.Paths[0].Error = "" }, "files: what belongs to the machine"},
		{"paths not tried", func(e *Evidence) { e.Inside.Paths = e.Inside.Paths[1:] }, "files: what belongs to the machine"},
		{"a writable root", func(e *Evidence) { e.Inside.Mounts[0].ReadOnly = false }, "files: root"},
		{"a writable place", func(e *Evidence) { e.Inside.Writable = append(e.Inside.Writable, "/workspaces") }, "files: writable places"},
		{"the read-only mount is writable", func(e *Evidence) { e.Inside.Writable = append(e.Inside.Writable, "/agent") }, "files: writable places"},
		{"a mount that is writable", func(e *Evidence) { e.Inside.Mounts[3].ReadOnly = false }, "mounts: /agent"},
		{"a mount under another", func(e *Evidence) { e.Inside.Mounts = append(e.Inside.Mounts, findings.Mount{Target: "/agent"}) }, "mounts: /agent"},
		{"a mount that is missing", func(e *Evidence) { e.Inside.Mounts = slices.Delete(e.Inside.Mounts, 2, 3) }, "mounts: /workspace"},
		{"a volume that is missing", func(e *Evidence) { e.Inside.Mounts = slices.Delete(e.Inside.Mounts, 4, 5) }, "mounts: /vol"},
		{"a disk in place of memory", func(e *Evidence) { e.Inside.Mounts[1].Type = "ext4" }, "mounts: /tmp"},
		{"more memory than asked for", func(e *Evidence) { e.Inside.Mounts[1].Options = "rw,nosuid,size=2048k" }, "mounts: /tmp"},
		{"memory without a size", func(e *Evidence) { e.Inside.Mounts[1].Options = "rw,nosuid" }, "mounts: /tmp"},
		{"memory with set-user-ID", func(e *Evidence) { e.Inside.Mounts[1].Options = "rw,size=1m" }, "mounts: /tmp"},
		{"one more mount, read-only", func(e *Evidence) { addMount(e, "/home", "ext4") }, "mounts: others"},
		{"certificates that can be changed", func(e *Evidence) {
			e.Inside.Mounts = append(e.Inside.Mounts, findings.Mount{Target: sandbox.RootsTarget})
		}, "mounts: others"},
		{"a file of the host's /etc", func(e *Evidence) { addMount(e, "/etc/shadow", "ext4") }, "mounts: others"},
		{"a disk below /dev", func(e *Evidence) { addMount(e, "/dev/host", "ext4") }, "mounts: others"},
		{"the host's kernel files", func(e *Evidence) { addMount(e, "/sys/kernel/debug", "debugfs") }, "mounts: others"},
		{"an engine's file without an engine", func(e *Evidence) { addMount(e, "/etc/hosts", "ext4") }, "mounts: others"},
		{"the host's programs under an image", func(e *Evidence) { e.Spec.Image = "debian" }, "mounts: others"},
		{"the host's programs, writable", func(e *Evidence) { e.Inside.Mounts[5].ReadOnly = false }, "mounts: others"},
		{"an interface", func(e *Evidence) { e.Inside.Network.Interfaces = []string{"lo", "eth0"} }, "network: interfaces"},
		{"a route", func(e *Evidence) { e.Inside.Network.Routes = []string{"eth0"} }, "network: routes"},
		{"a way to the metadata", func(e *Evidence) { e.Inside.Network.Reach[1].Error = "" }, "network: metadata address"},
		{"the way to the metadata not tried", func(e *Evidence) { e.Inside.Network.Reach[1].Name = "198.18.0.1" }, "network: metadata address"},
		{"a way to the internet", func(e *Evidence) { e.Inside.Network.Reach[len(e.Inside.Network.Reach)-1].Error = "" }, "network: internet"},
		{"a way to a name server", func(e *Evidence) {
			e.Spec.DNS, e.Inside.Network.Servers = []string{"192.0.2.53"}, []string{"192.0.2.53"}
			e.Inside.Network.Reach = append(e.Inside.Network.Reach, findings.Attempt{Name: "192.0.2.53"})
		}, "network: DNS"},
		{"another resolver", func(e *Evidence) { e.Inside.Network.Servers = []string{"127.0.0.53"} }, "egress: resolver"},
		{"a second resolver", func(e *Evidence) { e.Inside.Network.Servers = append(e.Inside.Network.Servers, "127.0.0.1") }, "egress: resolver"},
		{"no resolver", func(e *Evidence) { e.Inside.Network.Servers = nil }, "egress: resolver"},
		{"a public name by the resolver", func(e *Evidence) { e.Inside.Network.Egress[0].Error = "" }, "egress: a public name without a grant"},
		{"a public name by the proxy", func(e *Evidence) { e.Inside.Network.Egress[1].Error = "" }, "egress: a public name without a grant"},
		{"public names not tried", func(e *Evidence) { e.Inside.Network.Egress = nil }, "egress: a public name without a grant"},
		{"the guest is not process 1", func(e *Evidence) { e.Guest.PID = 77 }, "processes: process 1"},
		{"the guest is not process 1, as the host sees", func(e *Evidence) { e.Outside.PID = 77 }, "processes: process 1"},
		{"the kernel's threads", func(e *Evidence) {
			e.Inside.Processes = append(e.Inside.Processes, findings.Seen{PID: 2, Name: "kthreadd"})
		}, "processes: host pids"},
		{"the /proc of another namespace", func(e *Evidence) { e.Inside.Self.InProc = 4711 }, "processes: host pids"},
		{"a process from elsewhere", func(e *Evidence) {
			e.Inside.Processes = append(e.Inside.Processes, findings.Seen{PID: 9, Name: "sh"})
		}, "processes: host pids"},
		{"a tracer", func(e *Evidence) { e.Inside.Guest[0].Error = "" }, "guest: tracing, memory, descriptors, limits, priority"},
		{"a way to the guest not tried", func(e *Evidence) { e.Inside.Guest = e.Inside.Guest[1:] }, "guest: tracing, memory, descriptors, limits, priority"},
		{"a probe that others can change", func(e *Evidence) { e.Inside.Self.Dumpable = true }, "guest: the probe's report"},
		{"a report that is full", func(e *Evidence) { e.Inside.Writable = slices.Repeat([]string{"/tmp"}, findings.MaxEntries) }, "guest: the probe's report"},
		{"a dumpable guest", func(e *Evidence) { e.Guest.Dumpable = true }, "guest: dumpable"},
		{"no limit of processes", func(e *Evidence) { e.Inside.Limits.Pids = -1 }, "limits: processes"},
		{"a limit that the host does not see", func(e *Evidence) { e.Outside.Limits.Memory = 1 << 40 }, "limits: memory"},
		{"no limit, as the host sees", func(e *Evidence) { e.Outside.Limits.Pids = noLimit }, "limits: processes"},
		{"more swap", func(e *Evidence) { e.Inside.Limits.Swap = 1 << 30 }, "limits: memory and swap"},
		{"swap that nobody sees", func(e *Evidence) { e.Inside.Limits.Swap = 0 }, "limits: memory and swap"},
		{"more files in the root", func(e *Evidence) {
			e.Spec.ReadOnlyRoot, e.Spec.Limits.Storage.Inodes, e.Inside.Limits.Disks.Inodes = false, 64, 65
		}, "limits: files of the root"},
		{"a limit that nobody sees", func(e *Evidence) { e.Inside.Limits.CPUs = 0 }, "limits: processors"},
		{"writing without a limit", func(e *Evidence) { e.Inside.Limits.Disks.WriteBps = 0 }, "limits: written a second"},
		{"more reading", func(e *Evidence) { e.Inside.Limits.Disks.ReadIOps = 51 }, "limits: reads a second"},
		{"a larger root", func(e *Evidence) { e.Spec.ReadOnlyRoot, e.Spec.Limits.Storage.Size = false, 1<<30 }, "limits: size of the root"},
		{"more files", func(e *Evidence) { e.Inside.Limits.Resource["nofile"] = findings.Ulimit{Soft: 100, Hard: 300} }, "limits: nofile"},
		{"a disk", func(e *Evidence) {
			e.Inside.Devices = append(e.Inside.Devices, findings.Device{Path: "/dev/sda", Block: true, Major: 8})
		}, "devices: devices"},
		{"a socket", func(e *Evidence) { e.Inside.Sockets = []string{"/run/docker.sock"} }, "devices: engine and host sockets"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := sound()
			c.spoil(e)
			if broken := gaps(Checks(e)); !slices.Equal(broken, []string{c.want}) {
				t.Errorf("gaps %q, want %q", broken, c.want)
			}
		})
	}
}

func addMount(e *Evidence, target, kind string) {
	e.Inside.Mounts = append(e.Inside.Mounts, findings.Mount{Target: target, Type: kind, ReadOnly: true})
}

// What was not promised is a note, never a gap.
func TestNotPromised(t *testing.T) {
	e := sound()
	e.Spec = &sandbox.Spec{Backend: "docker", User: "agent", Network: "bridge", SeccompProfile: "/p.json", CapDrop: []string{"NET_RAW"}, GPUs: "all"}
	e.Inside.Self.Capabilities["CapEff"] = "0000000000000001"
	e.Inside.Calls[5].Error = ""
	e.Inside.Namespaces["user"] = e.Host["user"]
	e.Inside.Mounts = []findings.Mount{{Target: "/", Type: "overlay"}, {Target: "/usr/lib/libcuda.so", Type: "ext4", ReadOnly: true}, {Target: "/etc/hosts", Type: "ext4"}}
	e.Inside.Namespaces["time"] = e.Host["time"]
	e.Inside.Network = findings.Network{Interfaces: []string{"eth0"}, Routes: []string{"eth0"}, Reach: []findings.Attempt{{Name: "169.254.169.254"}}}
	e.Inside.Devices = []findings.Device{{Path: "/dev/nvidia0", Major: 195}}
	e.Inside.Processes = append(e.Inside.Processes, findings.Seen{PID: 28, Name: "sh"}) // docker exec
	checks := Checks(e)
	if broken := gaps(checks); len(broken) > 0 {
		t.Errorf("gaps: %q", broken)
	}
	e.Inside.Self.Capabilities["CapEff"] = "0000000000002000"
	if broken := gaps(Checks(e)); !slices.Equal(broken, []string{"privileges: capabilities"}) {
		t.Errorf("a dropped capability is there: gaps %q", broken)
	}
}

func TestConfiguration(t *testing.T) {
	if Configuration("a", "a").Status != OK || Configuration("a", "b").Status != Gap {
		t.Error("the hash decides nothing")
	}
}

// An empty report keeps no promise that was asked for.
func TestEmptyReport(t *testing.T) {
	e := sound()
	e.Inside, e.Guest, e.Outside = &findings.Report{}, Guest{}, Outside{}
	broken := strings.Join(gaps(Checks(e)), "\n")
	for _, ring := range []string{"user", "privileges", "system calls", "namespaces", "files", "mounts", "network", "egress", "processes", "guest", "limits", "devices"} {
		if !strings.Contains(broken, ring+":") {
			t.Errorf("no gap in ring %q", ring)
		}
	}
}

// Numbers are written for people, and no two alike.
func TestAmounts(t *testing.T) {
	for want, got := range map[string]string{
		"96 MiB": inBytes(96 << 20), "1 GiB": inBytes(1 << 30), "1500 bytes": inBytes(1500), "1 TiB": inBytes(1 << 40), "2048 TiB": inBytes(1 << 51),
		"40": withReserve(40)(40), "40, and 32 for the guest": withReserve(40)(72), "4000": withReserve(40)(4000), "0.5": plainNumber(0.5),
		"no limit": amount(plainNumber, -1), "none to be seen": amount(inBytes, 0),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
