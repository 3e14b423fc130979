package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestBrowserProfileAnswers: a browser gets the namespaces of its own sandbox, and none
// of what a user namespace would open.
func TestBrowserProfileAnswers(t *testing.T) {
	const iptables, ip6tables = 64, 64 // IPT_SO_GET_INFO, IP6T_SO_GET_INFO
	for _, c := range []struct {
		name string
		call string
		args []uint64
		want unix.Errno
	}{
		{"the zygote's namespaces", "clone", []uint64{unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | uint64(unix.SIGCHLD)}, 0},
		{"fork", "clone", []uint64{uint64(unix.SIGCHLD)}, 0},
		{"user namespace", "unshare", []uint64{unix.CLONE_NEWUSER}, 0},
		{"empty root", "chroot", nil, 0},
		{"stream", "socket", []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK}, 0},
		{"datagram", "socket", []uint64{unix.AF_INET6, unix.SOCK_DGRAM}, 0},
		{"messages", "socket", []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, 0},
		{"pair", "socketpair", []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, 0},
		{"receive buffer", "setsockopt", []uint64{3, unix.SOL_SOCKET, unix.SO_RCVBUF}, 0},
		{"no delay", "setsockopt", []uint64{3, unix.IPPROTO_TCP, unix.TCP_NODELAY}, 0},
		{"IPv6 only", "setsockopt", []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY}, 0},

		{"mount namespace", "clone", []uint64{unix.CLONE_NEWUSER | unix.CLONE_NEWNS}, unix.EPERM},
		{"IPC namespace", "clone", []uint64{unix.CLONE_NEWIPC}, unix.EPERM},
		{"host name namespace", "clone", []uint64{unix.CLONE_NEWUTS}, unix.EPERM},
		{"control group namespace", "clone", []uint64{unix.CLONE_NEWCGROUP}, unix.EPERM},
		{"any namespace by clone3", "clone3", nil, unix.ENOSYS},
		{"unshare of mounts", "unshare", []uint64{unix.CLONE_NEWUSER | unix.CLONE_NEWNS}, unix.EPERM},
		{"unshare of the network", "unshare", []uint64{unix.CLONE_NEWNET}, unix.EPERM},
		{"unshare with a bit that the kernel does not look at", "unshare", []uint64{unix.CLONE_NEWNS | 1<<32}, unix.EPERM},
		{"setns", "setns", nil, unix.EPERM},
		{"mount", "mount", nil, unix.EPERM},
		{"new mount interface", "fsopen", nil, unix.EPERM},
		{"netlink", "socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW}, unix.EPERM},
		{"packets", "socket", []uint64{unix.AF_PACKET, unix.SOCK_RAW}, unix.EPERM},
		{"raw socket", "socket", []uint64{unix.AF_INET, unix.SOCK_RAW}, unix.EPERM},
		{"raw socket with flags", "socket", []uint64{unix.AF_INET6, unix.SOCK_RAW | unix.SOCK_CLOEXEC}, unix.EPERM},
		{"packet filters", "getsockopt", []uint64{3, unix.IPPROTO_IP, iptables}, unix.EPERM},
		{"packet filters of IPv6", "setsockopt", []uint64{3, unix.IPPROTO_IPV6, ip6tables}, unix.EPERM},
		{"options of other protocols", "setsockopt", []uint64{3, unix.IPPROTO_SCTP, 1}, unix.EPERM},
		{"keyrings", "keyctl", nil, unix.EPERM},
		{"programs in the kernel", "bpf", nil, unix.EPERM},
		{"rings", "io_uring_setup", nil, unix.EPERM},
		{"other processes", "ptrace", nil, unix.EPERM},
		{"set-user-ID", "fchmodat", []uint64{0, 0, 0o4755}, unix.EPERM},
	} {
		for arch := range machines {
			if got := verdictOf(t, arch, browserFile, c.call, c.args...); got != c.want {
				t.Errorf("%s: %s: %s%#x: got %q, want %q", arch, c.name, c.call, c.args, got, c.want)
			}
		}
	}
}

// TestBrowserProfileRefusesEveryNamedCall: of the refused calls only two are opened.
func TestBrowserProfileRefusesEveryNamedCall(t *testing.T) {
	for arch := range machines {
		for name := range refusals {
			if got := verdictOf(t, arch, browserFile, name); name != "chroot" && got != unix.EPERM {
				t.Errorf("%s: %s answers %q, want EPERM", arch, name, got)
			}
		}
	}
}
