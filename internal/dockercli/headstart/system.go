package headstart

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel is asked without the runtime, which would want to know of it, in
// every program: as between fork and exec there may be none.

// descriptor is an open file, or none: it is one more than its number.
type descriptor int32

// Those that every program has.
const (
	stdin descriptor = iota + 1
	stdout
	stderr
)

func (d *descriptor) number() int32 { return int32(*d - 1) }

func (d *descriptor) set(number, _ uintptr, err syscall.Errno) bool {
	if err == 0 {
		*d = descriptor(number + 1)
	}
	return err == 0
}

func (d *descriptor) open(path unsafe.Pointer, flags int) bool {
	if path == nil {
		return false
	}
	from := unix.AT_FDCWD
	return d.set(syscall.RawSyscall6(unix.SYS_OPENAT, uintptr(from), uintptr(path), uintptr(flags|unix.O_CLOEXEC), 0, 0, 0))
}

func (d *descriptor) isOpen() bool {
	_, _, err := syscall.RawSyscall6(unix.SYS_FCNTL, uintptr(d.number()), unix.F_GETFD, 0, 0, 0, 0)
	return err == 0
}

func (d *descriptor) close() {
	if *d != 0 {
		syscall.RawSyscall6(unix.SYS_CLOSE, uintptr(d.number()), 0, 0, 0, 0, 0)
		*d = 0
	}
}

func (d *descriptor) read(b []byte) (n int, ok bool) {
	got, _, err := syscall.RawSyscall6(unix.SYS_READ, uintptr(d.number()), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0, 0)
	if err != 0 {
		return 0, false
	}
	return int(got), true
}

// send sends all of it, or fails.
func (d *descriptor) send(b []byte) bool {
	sent, _, err := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(d.number()), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	return err == 0 && int(sent) == len(b)
}

// write writes so much of it, and of a socket no more than it takes at once.
func (d *descriptor) write(b []byte, socket bool) int {
	trap, flags := uintptr(unix.SYS_WRITE), uintptr(0)
	if socket {
		trap, flags = unix.SYS_SENDTO, unix.MSG_DONTWAIT
	}
	n, _, err := syscall.RawSyscall6(trap, uintptr(d.number()), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
	if err != 0 {
		return 0
	}
	return int(n)
}

// writable tells whether there is room to write.
func (d *descriptor) writable() bool {
	fds := [1]unix.PollFd{{Fd: d.number(), Events: unix.POLLOUT}}
	return poll(fds[:], 0) && fds[0].Revents == unix.POLLOUT
}

// kind is what kind of file it is, 0 if that cannot be told.
func (d *descriptor) kind() uint32 {
	var st unix.Stat_t
	if _, _, err := syscall.RawSyscall6(unix.SYS_FSTAT, uintptr(d.number()), uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0); err != 0 {
		return 0
	}
	return st.Mode & unix.S_IFMT
}

// lockShared takes the lock on one byte together with others, at once or not at
// all.
func (d *descriptor) lockShared(place int64) bool {
	lock := unix.Flock_t{Type: unix.F_RDLCK, Start: place, Len: 1}
	_, _, err := syscall.RawSyscall6(unix.SYS_FCNTL, uintptr(d.number()), unix.F_OFD_SETLK, uintptr(unsafe.Pointer(&lock)), 0, 0, 0)
	return err == 0
}

func (d *descriptor) socket() bool {
	return d.set(syscall.RawSyscall6(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0, 0, 0))
}

func (d *descriptor) dial(address unsafe.Pointer, size uintptr) bool {
	_, _, err := syscall.RawSyscall6(unix.SYS_CONNECT, uintptr(d.number()), uintptr(address), size, 0, 0, 0)
	return err == 0
}

// peer is the process at the other end, -1 if that cannot be told.
func (d *descriptor) peer() int64 {
	var cred unix.Ucred
	size := uint32(unix.SizeofUcred)
	_, _, err := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(d.number()), unix.SOL_SOCKET, unix.SO_PEERCRED,
		uintptr(unsafe.Pointer(&cred)), uintptr(unsafe.Pointer(&size)), 0)
	if err != 0 {
		return -1
	}
	return int64(cred.Pid)
}

// readLink is how long the target of a link is, -1 if it is none.
func readLink(path unsafe.Pointer, b []byte) int {
	from := unix.AT_FDCWD
	n, _, err := syscall.RawSyscall6(unix.SYS_READLINKAT, uintptr(from), uintptr(path), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), 0, 0)
	if err != 0 {
		return -1
	}
	return int(n)
}

// poll waits until there is something to do. The kernel takes what was waited
// from what is left.
func poll(fds []unix.PollFd, within time.Duration) bool {
	left := unix.NsecToTimespec(within.Nanoseconds())
	for {
		ready, _, err := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(fds))), uintptr(len(fds)), uintptr(unsafe.Pointer(&left)), 0, 0, 0)
		if err != unix.EINTR {
			return err == 0 && ready > 0
		}
	}
}

// now is the time since some moment in the past.
func now() time.Duration {
	var t unix.Timespec
	syscall.RawSyscall6(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&t)), 0, 0, 0, 0)
	return time.Duration(t.Sec)*time.Second + time.Duration(t.Nsec)
}

func random(b *[32]byte) bool {
	n, _, err := syscall.RawSyscall6(unix.SYS_GETRANDOM, uintptr(unsafe.Pointer(b)), unsafe.Sizeof(*b), unix.GRND_NONBLOCK, 0, 0, 0)
	return err == 0 && n == unsafe.Sizeof(*b)
}

func exit(code int) {
	syscall.RawSyscall6(unix.SYS_EXIT_GROUP, uintptr(code), 0, 0, 0, 0, 0)
}
