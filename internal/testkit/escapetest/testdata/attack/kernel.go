package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mounts changes mounts, in the old ways and the new. Whatever works is seen by
// this mount namespace only.
func mounts(a *attempts, args []string) {
	dir := args[0] // a directory that may be covered
	for _, m := range []struct {
		step, source, target, kind string
		flags                      uintptr
		data                       string
	}{
		{"bind the root", "/", dir, "", unix.MS_BIND, ""},
		{"tmpfs", "none", dir, "tmpfs", 0, "size=4k"},
		{"proc", "none", dir, "proc", 0, ""},
		{"control groups", "none", dir, "cgroup", 0, "pids"},
		{"control groups version 2", "none", dir, "cgroup2", 0, ""},
		{"overlay", "none", dir, "overlay", 0, "lowerdir=/etc:/usr"},
		{"writable root", "", "/", "", unix.MS_REMOUNT | unix.MS_BIND, ""},
		{"writable sys", "", "/sys", "", unix.MS_REMOUNT | unix.MS_BIND, ""},
		{"shared root", "", "/", "", unix.MS_SHARED, ""},
	} {
		a.try("mount "+m.step, unix.Mount(m.source, m.target, m.kind, m.flags, m.data))
	}
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	a.try("fsopen", err)
	tree, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	a.try("open_tree clone", err)
	a.try("move_mount", unix.MoveMount(tree, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH))
	a.try("mount_setattr writable root", unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}))
	a.try("umount proc", unix.Unmount("/proc/sys", unix.MNT_DETACH))
	a.try("chroot", unix.Chroot(dir))
	a.try("pivot_root", unix.PivotRoot(dir, dir))
	unix.Close(fs)
}

// namespaces makes new ones and enters those of others.
func namespaces(a *attempts, _ []string) {
	for name, flag := range map[string]uintptr{
		"user": unix.CLONE_NEWUSER, "user and mount": unix.CLONE_NEWUSER | unix.CLONE_NEWNS, "mount": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID,
		"net": unix.CLONE_NEWNET, "ipc": unix.CLONE_NEWIPC, "uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP,
		"user and net": unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
	} {
		cmd := exec.Command("/proc/self/exe", "child")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flag}
		a.try("clone "+name, cmd.Run())
		if flag&unix.CLONE_NEWUSER == 0 { // a program with threads cannot, walls or not
			a.call("unshare "+name, unix.SYS_UNSHARE, flag)
		}
	}
	arguments := struct {
		flags uint64
		rest  [10]uint64
	}{flags: unix.CLONE_NEWUSER}
	if child := a.call("clone3 user", unix.SYS_CLONE3, uintptr(unsafe.Pointer(&arguments)), unsafe.Sizeof(arguments)); child == 0 && a.worked > 0 {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	for _, kind := range []string{"mnt", "net", "pid", "user"} {
		fd, err := unix.Open("/proc/1/ns/"+kind, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			a.try("open /proc/1/ns/"+kind, err)
			continue
		}
		a.try("setns "+kind, unix.Setns(fd, 0))
	}
}

func keyrings(a *attempts, _ []string) {
	const thread, session, read = -1, -3, 11
	_, err := unix.KeyctlJoinSessionKeyring("atoll-canary")
	a.try("join a session keyring", err)
	_, err = unix.AddKey("user", "atoll-canary", []byte("x"), thread)
	a.try("add a key", err)
	_, err = unix.RequestKey("user", "atoll-canary", "", thread)
	a.try("request a key", err)
	_, err = unix.KeyctlBuffer(read, session, make([]byte, 64), 64)
	a.try("read the session keyring", err)
}

// kernelPrograms loads programs into the kernel and watches it.
func kernelPrograms(a *attempts, _ []string) {
	const mapCreate, progLoad, arrayMap, socketFilter = 0, 5, 2, 1
	create := struct{ kind, key, value, entries uint32 }{arrayMap, 4, 4, 1}
	a.call("bpf map", unix.SYS_BPF, mapCreate, uintptr(unsafe.Pointer(&create)), unsafe.Sizeof(create))
	code := [2]uint64{0x00000000000000b7, 0x0000000000000095} // r0 = 0; exit
	license := []byte("GPL\x00")
	load := struct {
		kind, count     uint32
		code, license   uint64
		level, size     uint32
		log             uint64
		version, flags_ uint32
	}{kind: socketFilter, count: 2, code: uint64(uintptr(unsafe.Pointer(&code))), license: uint64(uintptr(unsafe.Pointer(&license[0])))}
	a.call("bpf program", unix.SYS_BPF, progLoad, uintptr(unsafe.Pointer(&load)), unsafe.Sizeof(load))
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: unix.PERF_COUNT_SW_CPU_CLOCK, Bits: unix.PerfBitExcludeKernel}
	_, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	a.try("perf event of itself", err)
	a.call("userfaultfd", unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1)
	_, err = unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_FID, 0)
	a.try("fanotify", err)
}

func ioUring(a *attempts, _ []string) {
	var params [120]byte
	a.call("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)))
}

// trace takes hold of a process of the host.
func trace(a *attempts, args []string) {
	var pid int
	_, err := fmt.Sscan(args[0], &pid)
	must(err)
	const seize = 0x4206
	a.call("ptrace", unix.SYS_PTRACE, seize, uintptr(pid))
	local := make([]byte, 8)
	_, err = unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &local[0], Len: 8}}, []unix.RemoteIovec{{Base: stackOf(pid), Len: 8}}, 0)
	a.try("process_vm_readv", err)
	a.try("open its memory", open(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDONLY))
	fd, err := unix.PidfdOpen(pid, 0)
	a.try("pidfd_open", err)
	if err == nil {
		_, err = unix.PidfdGetfd(fd, 0, 0)
		a.try("pidfd_getfd", err)
	}
}

// stackOf finds an address that is there.
func stackOf(pid int) uintptr {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	var start uint64
	_, _ = fmt.Sscanf(string(text), "%x-", &start)
	return uintptr(start)
}

// guestHelper does what would change the answers of a program that the host runs
// from the guest's file, such as a probe: one is started here, and held up.
func guestHelper(a *attempts, args []string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	defer listener.Close()
	cmd := exec.Command(args[0], "connect", listener.Addr().String())
	input, err := cmd.StdinPipe()
	must(err)
	output, err := cmd.StdoutPipe()
	must(err)
	must(cmd.Start())
	conn, err := listener.Accept() // it runs, and waits for us
	must(err)
	proc := fmt.Sprintf("/proc/%d/", cmd.Process.Pid)
	for _, file := range []string{"mem", "fd/1"} {
		a.try("write its "+file, open(proc+file, unix.O_WRONLY))
	}
	for _, file := range []string{"environ", "maps", "exe"} {
		a.try("read its "+file, readable(proc+file))
	}
	_, _, _ = conn.Close(), input.Close(), output.Close()
	_ = cmd.Wait()
}

// connect stands for the guest's program where there is none.
func connect(_ *attempts, args []string) {
	conn, err := net.Dial("tcp", args[0])
	must(err)
	_, _ = io.Copy(io.Discard, conn)
}

// guestMemory does the same to process 1, which may be seen.
func guestMemory(a *attempts, _ []string) {
	const seize = 0x4206
	a.call("ptrace", unix.SYS_PTRACE, seize, 1)
	a.try("open /proc/1/mem", open("/proc/1/mem", unix.O_RDONLY))
	for _, file := range []string{"environ", "maps", "fd/0", "fdinfo/0", "cwd", "root", "map_files", "ns/mnt", "auxv", "stack", "syscall", "io"} {
		a.try("read /proc/1/"+file, readable("/proc/1/"+file))
	}
	local := make([]byte, 8)
	_, err := unix.ProcessVMReadv(1, []unix.Iovec{{Base: &local[0], Len: 8}}, []unix.RemoteIovec{{Base: 4096, Len: 8}}, 0)
	a.try("process_vm_readv", err)
	if fd, err := unix.PidfdOpen(1, 0); err == nil {
		_, err = unix.PidfdGetfd(fd, 0, 0)
		a.try("pidfd_getfd", err)
	}
	limit := unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}
	a.try("take its stack", unix.Prlimit(1, unix.RLIMIT_STACK, &limit, nil))
}

// signal ends a process of the host.
func signal(a *attempts, args []string) {
	var pid int
	_, err := fmt.Sscan(args[0], &pid)
	must(err)
	a.try("kill", unix.Kill(pid, unix.SIGKILL))
	a.try("tgkill", unix.Tgkill(pid, pid, unix.SIGKILL))
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	a.try("pidfd_send_signal", err)
}

// endGuest sends process 1 every signal, and everybody else one. Sending works;
// the test looks at who is left.
func endGuest(_ *attempts, _ []string) {
	for number := unix.Signal(1); number <= 64; number++ {
		_ = unix.Kill(1, number)
	}
	_ = unix.Kill(-1, unix.SIGKILL)
}

// endOthers ends every process beside itself, over and over, until it is ended.
func endOthers(_ *attempts, _ []string) {
	for {
		_ = unix.Kill(-1, unix.SIGKILL)
	}
}

func kernelLog(a *attempts, _ []string) {
	const readAll, size = 3, 10
	_, err := unix.Klogctl(size, nil)
	a.try("ask its size", err)
	_, err = unix.Klogctl(readAll, make([]byte, 64))
	a.try("read it", err)
	a.try("open /dev/kmsg", open("/dev/kmsg", unix.O_RDONLY))
	a.try("open /proc/kmsg", open("/proc/kmsg", unix.O_RDONLY))
}

// clock sets the clock's tick to what it is, and the time to none that can be.
func clock(a *attempts, _ []string) {
	var timex unix.Timex
	if _, err := unix.Adjtimex(&timex); err == nil {
		const tick = 0x4000
		timex.Modes = tick
		_, err = unix.Adjtimex(&timex)
		a.try("adjtimex", err)
	}
	never := unix.Timespec{Nsec: -1}
	_, _, errno := syscall.Syscall(unix.SYS_CLOCK_SETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&never)), 0)
	if errno == unix.EINVAL {
		errno = 0 // the kernel checked the time: no filter refused
	}
	a.try("clock_settime", orNil(errno))
}

// privileges asks for what an ordinary program gets from a set-user-ID file.
func privileges(a *attempts, _ []string) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN, Inheritable: 1 << unix.CAP_SYS_ADMIN}}
	a.try("capset", unix.Capset(&header, &data[0]))
	if os.Getuid() != 0 {
		err := unix.Setresuid(0, 0, 0)
		if err == unix.EINVAL {
			err = unix.EPERM // there is no user 0 here
		}
		a.try("setuid", err)
	}
	a.try("sethostname", unix.Sethostname([]byte("atoll-canary")))
	a.call("no randomisation", unix.SYS_PERSONALITY, 0x0040000)
	a.call("swapon", unix.SYS_SWAPON, 0, 0)
	a.call("init_module", unix.SYS_INIT_MODULE, 0, 0, 0)
	a.call("kexec_load", unix.SYS_KEXEC_LOAD, 0, 0, 0, 0)
}
