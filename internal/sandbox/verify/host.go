package verify

import (
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

// Outside is what the host's kernel says of a sandbox's process 1. Nothing inside
// can change it. Where the process is on another machine, all of it is zero.
type Outside struct {
	// PID is the number that the process has inside; 0 if that cannot be read.
	PID        int
	Privileges findings.Process
	// Namespaces by kind, as far as this user may ask.
	Namespaces map[string]string
	Limits     findings.Limits
}

// Observe looks at a process of this host; 0 is none.
func Observe(pid int) Outside {
	if pid <= 0 {
		return Outside{}
	}
	status := statusOf("/proc/" + strconv.Itoa(pid) + "/status")
	return Outside{PID: innermost(status["NSpid"]), Privileges: privilegesOf(status), Namespaces: namespacesOf(strconv.Itoa(pid)), Limits: outsideLimits(pid)}
}

// HostNamespaces are the namespaces of this process, by kind.
func HostNamespaces() map[string]string { return namespacesOf("self") }

// kinds of namespaces.
func kinds() []string { return []string{"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"} }

func namespacesOf(process string) map[string]string {
	found := map[string]string{}
	for _, kind := range kinds() {
		if id, err := os.Readlink("/proc/" + process + "/ns/" + kind); err == nil {
			found[kind] = id
		}
	}
	return found
}

// statusOf reads "name: value" lines; what is not there is empty.
func statusOf(path string) map[string]string {
	text, _ := os.ReadFile(path)
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			values[name] = strings.TrimSpace(value)
		}
	}
	return values
}

// innermost is the last of a process's numbers, that of its own namespace.
func innermost(numbers string) int {
	fields := strings.Fields(numbers)
	if len(fields) == 0 {
		return 0
	}
	pid, _ := strconv.Atoi(fields[len(fields)-1])
	return pid
}

// capabilitySets are the sets of a process, by the kernel's names.
func capabilitySets() []string { return []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} }

func privilegesOf(status map[string]string) findings.Process {
	p := findings.Process{NoNewPrivs: status["NoNewPrivs"] == "1", Capabilities: map[string]string{}}
	for _, set := range capabilitySets() {
		p.Capabilities[set] = status[set]
	}
	p.Seccomp, _ = strconv.Atoi(status["Seccomp"])
	return p
}

// PeerPID is the process at the other end of a wire, as this host numbers it; 0
// if the wire does not tell.
func PeerPID(conn net.Conn) int {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return 0
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = control.Control(func(fd uintptr) {
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(peer.Pid)
		}
	})
	return pid
}
