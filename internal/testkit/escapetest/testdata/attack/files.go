package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// open opens and closes. What a mask of /dev/null answers is none of the file.
func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFCHR && stat.Rdev == unix.Mkdev(1, 3) && path != "/dev/null" {
		return unix.ENODATA
	}
	return nil
}

// readHostFile looks for the canary's words along every way that leads around a
// root: other processes', links, and dots.
func readHostFile(a *attempts, args []string) {
	path, words := args[0], args[1]
	ways := []string{path, "/proc/self/root" + path, "/proc/1/root" + path, "/proc/1/cwd/../../../../../.." + path, "/.." + path,
		"/proc/self/cwd/" + strings.Repeat("../", 20) + path, "/workspace/" + strings.Repeat("../", 20) + path}
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range pids {
		ways = append(ways, p+"/root"+path, p+"/cwd/"+strings.Repeat("../", 20)+path, p+"/task/"+filepath.Base(p)+"/root"+path)
	}
	ways = append(ways, "."+strings.Repeat("/..", 20)+path)
	for _, way := range slices.Compact(ways) {
		a.try(way, contains(way, words))
	}
}

// contains is nil if a file holds the words.
func contains(path, words string) error {
	text, err := os.ReadFile(path)
	if err == nil && !bytes.Contains(text, []byte(words)) {
		return unix.ENODATA
	}
	return err
}

func procSys(a *attempts, _ []string) {
	for _, name := range []string{
		"kernel/modprobe", "kernel/hotplug", "kernel/randomize_va_space", "kernel/panic", "kernel/pid_max", "kernel/ns_last_pid", "kernel/threads-max",
		"kernel/unprivileged_bpf_disabled", "vm/overcommit_memory", "vm/drop_caches", "fs/protected_symlinks", "fs/suid_dumpable", "fs/file-max",
		"fs/binfmt_misc/register", "net/ipv4/ip_forward", "user/max_user_namespaces",
	} {
		a.try("write "+name, open("/proc/sys/"+name, unix.O_WRONLY))
	}
	for _, path := range []string{"/proc/irq/default_smp_affinity", "/proc/bus/input", "/proc/fs/nfsd", "/sys/kernel/uevent_helper", "/sys/power/state",
		"/sys/kernel/mm/transparent_hugepage/enabled", "/sys/module/kernel/parameters/panic", "/sys/class/net/lo/mtu"} {
		a.try("write "+path, writable(path))
	}
}

func corePattern(a *attempts, _ []string) {
	for _, path := range []string{"/proc/sys/kernel/core_pattern", "/proc/self/root/proc/sys/kernel/core_pattern", "/proc/thread-self/root/proc/sys/kernel/core_pattern"} {
		a.try("write "+path, open(path, unix.O_WRONLY))
	}
	a.try("link to it", os.Symlink("/proc/sys/kernel/core_pattern", "/proc/self/attr/x"))
}

func sysrq(a *attempts, _ []string) {
	a.try("write /proc/sysrq-trigger", open("/proc/sysrq-trigger", unix.O_WRONLY))
	a.try("write /proc/sys/kernel/sysrq", open("/proc/sys/kernel/sysrq", unix.O_WRONLY))
}

// cgroup looks for files of control groups that could be written, in every
// hierarchy that can be seen.
func cgroup(a *attempts, _ []string) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	must(err)
	seen := 0
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !strings.HasPrefix(after, "cgroup") || len(fields) < 5 {
			continue
		}
		seen++
		for _, file := range []string{"release_agent", "notify_on_release", "cgroup.procs", "tasks", "cgroup.subtree_control", "memory.limit_in_bytes", "memory.max", "pids.max", "devices.allow"} {
			if path := filepath.Join(fields[4], file); exists(path) {
				a.try("write "+path, open(path, unix.O_WRONLY))
			}
		}
		child := filepath.Join(fields[4], "atoll-canary-"+strconv.Itoa(os.Getpid()))
		err := os.Mkdir(child, 0o755)
		a.try("make a group in "+fields[4], err)
		if err == nil {
			_ = os.Remove(child)
		}
	}
	fmt.Println("hierarchies seen:", seen)
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// devices makes nodes and opens those that should not be there.
func devices(a *attempts, args []string) {
	for _, dir := range append(args, "/dev", "/dev/shm", "/tmp") {
		path := filepath.Join(dir, "atoll-canary-"+strconv.Itoa(os.Getpid()))
		for name, node := range map[string]struct {
			mode uint32
			dev  uint64
		}{"null": {unix.S_IFCHR, unix.Mkdev(1, 3)}, "mem": {unix.S_IFCHR, unix.Mkdev(1, 1)}, "disk": {unix.S_IFBLK, unix.Mkdev(8, 0)}, "loop": {unix.S_IFBLK, unix.Mkdev(7, 0)}} {
			a.try("make "+name+" in "+dir, unix.Mknod(path, node.mode|0o600, int(node.dev)))
			_ = os.Remove(path)
		}
	}
	for _, path := range []string{"/dev/mem", "/dev/kmem", "/dev/port", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/loop-control", "/dev/vhost-vsock", "/dev/snapshot", "/proc/kcore"} {
		a.try("open "+path, open(path, unix.O_RDONLY))
	}
	_ = filepath.WalkDir("/dev", func(path string, _ os.DirEntry, _ error) error {
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeDevice != 0 && info.Mode()&os.ModeCharDevice == 0 {
			a.try("open disk "+path, open(path, unix.O_RDONLY))
		}
		return nil
	})
}

// fileHandle opens files by their numbers: the canary's, and the root of every
// file system that a mount brings.
func fileHandle(a *attempts, args []string) {
	if handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, args[0], 0); err == nil {
		_, err = openHandle(filepath.Dir(args[0]), handle)
		a.try("the canary", err)
	} else {
		a.try("a handle of the canary", err)
	}
	for _, dir := range []string{"/", "/workspace", "/etc", "/.atoll/wire"} {
		for inode := uint32(2); inode < 5; inode++ {
			handle := unix.NewFileHandle(1, []byte{byte(inode), 0, 0, 0, 0, 0, 0, 0})
			_, err := openHandle(dir, handle)
			if err == unix.ESTALE || err == unix.EINVAL {
				err = nil // the kernel searched for it: no filter refused
			}
			a.try(fmt.Sprintf("inode %d by %s", inode, dir), err)
		}
	}
}

func openHandle(dir string, handle unix.FileHandle) (int, error) {
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(at)
	fd, err := unix.OpenByHandleAt(at, handle, unix.O_RDONLY|unix.O_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return fd, err
}

// exeOverwrite is CVE-2019-5736: write to the program of the process that runs us, by
// any process's exe, also through a descriptor opened for nothing.
func exeOverwrite(a *attempts, _ []string) {
	own, err := os.Stat("/proc/self/exe")
	must(err)
	found, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, path := range append(found, "/.atoll/guest") {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, own) {
			continue // ourselves
		}
		a.try("write "+path, open(path, unix.O_WRONLY))
		a.try("write and cut "+path, openExisting(path))
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			a.try("hold "+path, err)
			continue
		}
		a.try("write "+path+" again", open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY))
	}
	a.try("remove the guest", unix.Unlink("/.atoll/guest"))
	a.try("rename the guest", unix.Rename("/.atoll/guest", "/.atoll/wire/old"))
	a.try("rename its directory", unix.Rename("/.atoll", "/old"))
	a.try("a program in its directory", open("/.atoll/new", unix.O_CREAT|unix.O_WRONLY))
}

// openExisting opens for reading and writing, as an append would.
func openExisting(path string) error { return open(path, unix.O_RDWR|unix.O_APPEND) }

// descriptors is CVE-2024-21626: a directory of the host left open in us, or as
// our working directory, leads to the canary.
func descriptors(a *attempts, args []string) {
	path, words := args[0], args[1]
	a.try("working directory", contains(strings.Repeat("../", 20)+path, words))
	if dir, err := os.Getwd(); err != nil || !strings.HasPrefix(dir, "/") {
		fmt.Println("working directory:", dir, err)
	}
	entries, err := os.ReadDir("/proc/self/fd")
	must(err)
	for _, entry := range entries {
		number, _ := strconv.Atoi(entry.Name())
		var stat unix.Stat_t
		if number < 3 || unix.Fstat(number, &stat) != nil {
			continue
		}
		target, _ := os.Readlink("/proc/self/fd/" + entry.Name())
		if stat.Mode&unix.S_IFMT == unix.S_IFDIR && !strings.HasSuffix(target, "/fd") {
			a.try("descriptor "+entry.Name()+" is "+target, nil)
		}
		a.try("through descriptor "+entry.Name(), contains("/proc/self/fd/"+entry.Name()+"/"+strings.Repeat("../", 20)+path, words))
	}
}

// maskedPaths reads what should be hidden: CVE-2025-31133, where a mask could be
// made to fail.
func maskedPaths(a *attempts, _ []string) {
	for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats", "/proc/acpi", "/proc/scsi", "/proc/asound",
		"/sys/firmware", "/sys/devices/virtual/powercap", "/proc/kpagecount", "/proc/kpageflags",
		"/proc/pressure", "/proc/pressure/memory", "/proc/pagetypeinfo", "/proc/buddyinfo", "/proc/zoneinfo", "/proc/locks", "/sys/kernel/slab"} {
		a.try("read "+path, readable(path))
	}
	for _, path := range []string{"/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/bus", "/proc/fs", "/proc/irq",
		"/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"} {
		a.try("write "+path, writable(path))
	}
}

func readable(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		if names, _ := f.Readdirnames(1); len(names) > 0 {
			return nil
		}
		return unix.ENODATA
	}
	if n, _ := f.Read(make([]byte, 1)); n == 0 {
		return unix.ENODATA
	}
	return nil
}

func writable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return unix.Access(path, unix.W_OK)
	}
	return open(path, unix.O_WRONLY)
}

// replaceDevices is the beginning of CVE-2025-31133 and -52565: links in place
// of devices that the next start might follow. What comes of it the test sees
// after that start.
func replaceDevices(_ *attempts, args []string) {
	for _, path := range []string{"/dev/null", "/dev/console", "/dev/ptmx", "/dev/pts", "/dev/fd", "/dev/shm"} {
		_ = os.RemoveAll(path + ".old")
		fmt.Println(path, os.Rename(path, path+".old"), os.Symlink(args[0], path))
	}
}

// hardLink gives a file of a read-only mount a second name where writing is
// allowed.
func hardLink(a *attempts, args []string) {
	source, target := args[0], args[1]
	try := func(step string, err error) {
		if err == nil {
			err = os.WriteFile(target, []byte("changed"), 0o600)
		}
		a.try(step, err)
		_ = os.Remove(target)
	}
	try("link", unix.Link(source, target))
	fd, err := unix.Open(source, unix.O_PATH|unix.O_CLOEXEC, 0)
	must(err)
	try("link by descriptor", unix.Linkat(fd, "", unix.AT_FDCWD, target, unix.AT_EMPTY_PATH))
	try("link through /proc", unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, target, unix.AT_SYMLINK_FOLLOW))
	try("move", unix.Rename(source, target))
	a.try("write it", open(source, unix.O_WRONLY))
	a.try("write it through /proc", open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY))
	a.try("change its mode", unix.Fchmodat(unix.AT_FDCWD, source, 0o4777, 0))
	a.try("remove it", unix.Unlink(source))
}

// replaceSocket puts a link to a host's socket where the host will look for us.
func replaceSocket(_ *attempts, args []string) {
	const socket = "/.atoll/wire/guest.sock"
	fmt.Println(os.Rename(socket, socket+".old"), os.Symlink(args[0], socket))
}

func abstractSocket(a *attempts, args []string) {
	conn, err := net.Dial("unix", "@"+args[0])
	a.try("connect", err)
	if err == nil {
		_ = conn.Close()
	}
}

// socketFamilies opens sockets that reach past a network namespace, also with a
// bit that a filter sees and the kernel does not.
func socketFamilies(a *attempts, _ []string) {
	for name, family := range map[string]uintptr{"vsock": unix.AF_VSOCK, "alg": unix.AF_ALG} {
		a.call(name, unix.SYS_SOCKET, family, unix.SOCK_STREAM)
		a.call(name+", upper bit set", unix.SYS_SOCKET, family|1<<32, unix.SOCK_STREAM)
	}
	usual := []uintptr{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	const pastTheLast = 64
	for family := range uintptr(pastTheLast) {
		if !slices.Contains(usual, family) {
			a.try(fmt.Sprint("family ", family), reaches(unix.SYS_SOCKET, family, unix.SOCK_STREAM))
			a.try(fmt.Sprint("a pair of family ", family), reaches(unix.SYS_SOCKETPAIR, family, unix.SOCK_STREAM))
		}
	}
	a.call("raw packets", unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0x300)
	a.call("raw internet", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
}

// reaches is nil if the kernel looks at the arguments of a call, whatever it
// thinks of them: its code for the family may have been loaded for that.
func reaches(trap, family, kind uintptr) error {
	var pair [2]int32
	fd, _, errno := unix.Syscall6(trap, family, kind|unix.SOCK_CLOEXEC, 0, uintptr(unsafe.Pointer(&pair)), 0, 0)
	if errno == unix.EPERM {
		return errno
	}
	if errno == 0 && trap == unix.SYS_SOCKET {
		unix.Close(int(fd))
	}
	return nil
}

// network asks for a way to other machines. Where there is none, nothing can be
// sent.
func network(a *attempts, _ []string) {
	for _, address := range []string{"169.254.169.254:80", "192.0.2.1:53", "[2001:db8::1]:53", "[fd00:ec2::254]:80"} {
		conn, err := net.Dial("udp", address) // sends nothing
		a.try("a way to "+address, err)
		if err == nil {
			_ = conn.Close()
		}
	}
}

func makeDirectory(a *attempts, args []string) {
	a.try("a directory "+args[0], unix.Mkdir(args[0], 0o777))
}
