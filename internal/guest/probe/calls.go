package probe

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

// call is a system call with arguments that are harmless where it is allowed.
type call struct {
	name string
	trap uintptr
	args [5]uintptr
}

// calls tries what the filter should refuse, and two that it should allow.
func calls() (tried []findings.Attempt) {
	area := new([256]byte)
	for _, c := range callsOn(uintptr(unsafe.Pointer(area))) {
		result, _, errno := syscall.RawSyscall6(c.trap, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], 0)
		if c.trap == unix.SYS_CLONE && errno == 0 && result == 0 {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0) // the child that should not be
		}
		tried = append(tried, findings.Attempt{Name: c.name, Error: errorName(errno)})
	}
	return tried
}

func errorName(errno syscall.Errno) string {
	if errno == 0 {
		return ""
	}
	return unix.ErrnoName(errno)
}

// callsOn returns the calls. Their pointers are to an area of zeros: empty names and
// structures without effect.
func callsOn(area uintptr) []call {
	nobody := ^uintptr(0)
	return []call{
		{"getpid", unix.SYS_GETPID, [5]uintptr{}},
		{"socket unix", unix.SYS_SOCKET, [5]uintptr{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}},
		{"unshare user", unix.SYS_UNSHARE, [5]uintptr{unix.CLONE_NEWUSER}},
		{"unshare mount", unix.SYS_UNSHARE, [5]uintptr{unix.CLONE_NEWNS}},
		{"clone user", unix.SYS_CLONE, [5]uintptr{unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}},
		{"clone3", unix.SYS_CLONE3, [5]uintptr{0, 0}},
		{"setns", unix.SYS_SETNS, [5]uintptr{nobody, 0}},
		{"keyctl", unix.SYS_KEYCTL, [5]uintptr{0, ^uintptr(2)}},
		{"add_key", unix.SYS_ADD_KEY, [5]uintptr{area, area}},
		{"request_key", unix.SYS_REQUEST_KEY, [5]uintptr{area, area}},
		{"bpf", unix.SYS_BPF, [5]uintptr{nobody, area, 0}},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [5]uintptr{area}},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, [5]uintptr{0, area}},
		{"userfaultfd", unix.SYS_USERFAULTFD, [5]uintptr{nobody}},
		{"ptrace", unix.SYS_PTRACE, [5]uintptr{unix.PTRACE_PEEKDATA, uintptr(os.Getpid())}},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [5]uintptr{uintptr(os.Getpid())}},
		{"pidfd_getfd", unix.SYS_PIDFD_GETFD, [5]uintptr{nobody}},
		{"kcmp", unix.SYS_KCMP, [5]uintptr{uintptr(os.Getpid()), uintptr(os.Getpid()), nobody}},
		{"mount", unix.SYS_MOUNT, [5]uintptr{area, area, area}},
		{"umount2", unix.SYS_UMOUNT2, [5]uintptr{area}},
		{"fsopen", unix.SYS_FSOPEN, [5]uintptr{area}},
		{"open_tree", unix.SYS_OPEN_TREE, [5]uintptr{nobody, area, 1}},
		{"move_mount", unix.SYS_MOVE_MOUNT, [5]uintptr{nobody, area, nobody, area}},
		{"mount_setattr", unix.SYS_MOUNT_SETATTR, [5]uintptr{nobody, area}},
		{"pivot_root", unix.SYS_PIVOT_ROOT, [5]uintptr{area, area}},
		{"chroot", unix.SYS_CHROOT, [5]uintptr{area}},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [5]uintptr{nobody, area}},
		{"fanotify_init", unix.SYS_FANOTIFY_INIT, [5]uintptr{nobody}},
		{"init_module", unix.SYS_INIT_MODULE, [5]uintptr{0, 0, area}},
		{"kexec_load", unix.SYS_KEXEC_LOAD, [5]uintptr{0, nobody}},
		{"swapon", unix.SYS_SWAPON, [5]uintptr{area}},
		{"syslog", unix.SYS_SYSLOG, [5]uintptr{3, 0, 0}},
		{"clock_settime", unix.SYS_CLOCK_SETTIME, [5]uintptr{nobody, area}},
		{"sethostname", unix.SYS_SETHOSTNAME, [5]uintptr{area, nobody}},
		{"reboot", unix.SYS_REBOOT, [5]uintptr{0, 0, 0}},
		{"personality", unix.SYS_PERSONALITY, [5]uintptr{0x0040000}},
		{"socket alg", unix.SYS_SOCKET, [5]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC}},
		{"socket alg, upper bits set", unix.SYS_SOCKET, [5]uintptr{unix.AF_ALG | 1<<32, unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC}},
		{"socket packet", unix.SYS_SOCKET, [5]uintptr{unix.AF_PACKET, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}},
		{"socket key", unix.SYS_SOCKET, [5]uintptr{unix.AF_KEY, unix.SOCK_RAW | unix.SOCK_CLOEXEC, 2}},
		{"socket rds", unix.SYS_SOCKET, [5]uintptr{unix.AF_RDS, unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC}},
		{"socket can", unix.SYS_SOCKET, [5]uintptr{unix.AF_CAN, unix.SOCK_RAW | unix.SOCK_CLOEXEC, 1}},
		{"socket tipc", unix.SYS_SOCKET, [5]uintptr{unix.AF_TIPC, unix.SOCK_RDM | unix.SOCK_CLOEXEC}},
		{"socket bluetooth", unix.SYS_SOCKET, [5]uintptr{unix.AF_BLUETOOTH, unix.SOCK_RAW | unix.SOCK_CLOEXEC, 1}},
		{"socket xdp", unix.SYS_SOCKET, [5]uintptr{unix.AF_XDP, unix.SOCK_RAW | unix.SOCK_CLOEXEC}},
		{"socketpair tipc", unix.SYS_SOCKETPAIR, [5]uintptr{unix.AF_TIPC, unix.SOCK_RDM | unix.SOCK_CLOEXEC, 0, area}},
		{"socket vsock", unix.SYS_SOCKET, [5]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}},
	}
}

// modes tries to set set-user-ID and set-group-ID, on a descriptor that is not
// open: a filter answers that it is forbidden, the kernel that there is no file.
func modes() (tried []findings.Attempt) {
	const closed, name = ^uintptr(0), "."
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		return nil
	}
	at := uintptr(unsafe.Pointer(path))
	how := unix.OpenHow{Flags: unix.O_CREAT, Mode: unix.S_ISUID}
	for _, c := range []call{
		{"fchmod set-user-ID", unix.SYS_FCHMOD, [5]uintptr{closed, unix.S_ISUID | 0o755}},
		{"fchmod set-group-ID", unix.SYS_FCHMOD, [5]uintptr{closed, unix.S_ISGID | 0o755}},
		{"fchmodat", unix.SYS_FCHMODAT, [5]uintptr{closed, at, unix.S_ISUID | 0o755}},
		{"fchmodat2", unix.SYS_FCHMODAT2, [5]uintptr{closed, at, unix.S_ISUID | 0o755}},
		{"openat", unix.SYS_OPENAT, [5]uintptr{closed, at, unix.O_CREAT, unix.S_ISUID | 0o755}},
		{"openat without a name", unix.SYS_OPENAT, [5]uintptr{closed, at, unix.O_TMPFILE | unix.O_RDWR, unix.S_ISGID | 0o755}},
		{"mknodat", unix.SYS_MKNODAT, [5]uintptr{closed, at, unix.S_IFREG | unix.S_ISUID | 0o755}},
		{"openat2", unix.SYS_OPENAT2, [5]uintptr{closed, at, uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how)}},
	} {
		_, _, errno := syscall.RawSyscall6(c.trap, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], 0)
		tried = append(tried, findings.Attempt{Name: c.name, Error: errorName(errno)})
	}
	return tried
}

// guest tries to trace, read and change process 1. It sends no signal: whether one is
// ignored follows from being process 1 of the namespace.
func guest() []findings.Attempt {
	var limit unix.Rlimit
	attempts := []findings.Attempt{
		{Name: "open /proc/1/mem", Error: errorText(open("/proc/1/mem", false))},
		{Name: "open /proc/1/environ", Error: errorText(readable("/proc/1/environ"))},
		{Name: "open /proc/1/fd/0", Error: errorText(open("/proc/1/fd/0", false))},
		{Name: "follow /proc/1/root", Error: errorText(readable("/proc/1/root"))},
		{Name: "write /proc/1/exe", Error: errorText(open("/proc/1/exe", true))},
		{Name: "trace", Error: errorName(trace())},
	}
	err := unix.Prlimit(1, unix.RLIMIT_NOFILE, nil, &limit)
	if err == nil { // sets what is set already
		err = unix.Prlimit(1, unix.RLIMIT_NOFILE, &limit, nil)
	}
	return append(attempts, findings.Attempt{Name: "set limits", Error: errorText(err)}, schedule())
}

// schedule sets the priority of process 1 to its present value.
func schedule() findings.Attempt {
	const offset = 20 // the call returns 20 less the priority
	now, err := unix.Getpriority(unix.PRIO_PROCESS, 1)
	if err == nil {
		err = unix.Setpriority(unix.PRIO_PROCESS, 1, offset-now)
	}
	return findings.Attempt{Name: "set priority", Error: errorText(err)}
}

// trace seizes process 1, which does not stop it, and detaches.
func trace() syscall.Errno {
	const seize = 0x4206
	_, _, errno := syscall.RawSyscall6(unix.SYS_PTRACE, seize, 1, 0, 0, 0, 0)
	if errno == 0 {
		syscall.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, 1, 0, 0, 0, 0)
	}
	return errno
}
