package spawn

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func vfork(flags uintptr) (pid, errno uintptr)

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// forkExec forks, and in the child becomes the program. The parent returns at
// once: the child works on this very frame, and only the frames above it are
// the parent's own. After it the parent must call afterFork.
//
//go:noinline
//go:norace
//go:nocheckptr
func forkExec(r *raw) (pid, errno uintptr) {
	var stage Stage
	var err syscall.Errno

	beforeFork()
	pid, errno = vfork(uintptr(unix.SIGCHLD) | unix.CLONE_VFORK | unix.CLONE_VM)
	if pid != 0 || errno != 0 {
		return pid, errno
	}

	// Here the child lives: raw system calls only, until the end.
	afterForkInChild()

	// The guest blocks signals that it reads as messages; its children do not.
	r.mask = 0
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&r.mask)), 0, 8, 0, 0)

	stage = StageSession
	if _, _, err = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); err != 0 {
		goto failed
	}
	if r.tty {
		stage = StageTTY
		if _, _, err = syscall.RawSyscall(unix.SYS_IOCTL, uintptr(r.files[0]), unix.TIOCSCTTY, 0); err != 0 {
			goto failed
		}
	}
	if r.dir != nil {
		stage = StageDir
		if _, _, err = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(r.dir)), 0, 0); err != 0 {
			goto failed
		}
	}
	stage = StageLimit
	for i := range r.limits {
		r.rlimit[0], r.rlimit[1] = r.limits[i].Soft, r.limits[i].Hard
		_, _, err = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, uintptr(r.limits[i].Resource), uintptr(unsafe.Pointer(&r.rlimit)), 0, 0, 0)
		if err != 0 {
			goto failed
		}
	}
	stage = StageFiles
	for i := range r.files {
		if _, _, err = syscall.RawSyscall(unix.SYS_DUP3, uintptr(r.files[i]), uintptr(i), 0); err != 0 {
			goto failed
		}
	}
	// Every descriptor of the guest closes itself on exec. This is for one that
	// a future change forgets; kernels that cannot do it say so, harmlessly.
	syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 3, ^uintptr(0)>>32, unix.CLOSE_RANGE_CLOEXEC)

	stage = StageExec
	_, _, err = syscall.RawSyscall(unix.SYS_EXECVE,
		uintptr(unsafe.Pointer(r.path)), uintptr(unsafe.Pointer(r.argv)), uintptr(unsafe.Pointer(r.envv)))

failed:
	r.failure[0], r.failure[1] = uint32(stage), uint32(err)
	syscall.RawSyscall(unix.SYS_WRITE, uintptr(r.report), uintptr(unsafe.Pointer(&r.failure)), unsafe.Sizeof(r.failure))
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 253, 0, 0)
	}
}
