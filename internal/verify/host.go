package verify

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// HostNamespaces are the namespaces of this process, by kind.
func HostNamespaces() map[string]string {
	found := map[string]string{}
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"} {
		if id, err := os.Readlink("/proc/self/ns/" + kind); err == nil {
			found[kind] = id
		}
	}
	return found
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
