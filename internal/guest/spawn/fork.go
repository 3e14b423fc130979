package spawn

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// runForked starts the child with a copy of our memory, where CLONE_VM without CLONE_THREAD
// fails: user-mode emulators support threads and forks only. The status lies in shared
// memory, and a pipe that is closed on exec tells when the child has detached.
func (s *childProgram) runForked() (int, syscall.Errno) {
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0, syscall.ENOMEM
	}
	defer func() { _ = unix.Munmap(page) }()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, syscall.EMFILE
	}
	defer unix.Close(pipe[0])
	both := (*childStatus)(unsafe.Pointer(unsafe.SliceData(page)))
	beforeFork()
	pid, errno := clone(uintptr(unix.SIGCHLD)|s.namespaces, &s.steps[0], both)
	afterFork()
	unix.Close(pipe[1])
	if errno != 0 {
		return 0, syscall.Errno(errno)
	}
	if !hungUp(pipe[0]) {
		_ = unix.Kill(int(pid), unix.SIGKILL)
		both.stage, both.errno = uint32(StageStalled), uint32(syscall.ETIMEDOUT)
	}
	*s.status = childStatus{stage: both.stage, errno: both.errno}
	return int(pid), 0
}

// hungUp waits until the other end of a pipe is closed, at most for startTimeout.
func hungUp(pipe int) bool {
	fds := []unix.PollFd{{Fd: int32(pipe), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(startTimeout.Milliseconds()))
		if err != unix.EINTR {
			return n > 0
		}
	}
}
