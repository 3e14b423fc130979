package spawn

import (
	"runtime"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syscallStep is one system call of the child. The assembly knows its layout.
type syscallStep struct {
	nr    uintptr
	args  [6]uintptr
	stage uintptr // reported if it fails; 0: failure is ignored
}

// childStatus is written by the child and the kernel. The assembly knows its layout.
type childStatus struct {
	sharing uint32 // 1 until the child has left our memory; cleared by the kernel
	stage   uint32 // the step that failed, if any; valid when sharing is 0
	errno   uint32
}

// cStrings are addresses of null-terminated strings and lists; dir is 0 if there is none.
type cStrings struct{ path, argv, env, dir uintptr }

// childProgram is the list of system calls of a child, and the memory that they refer to,
// which is pinned until release.
type childProgram struct {
	steps  []syscallStep
	status *childStatus
	// namespaces are CLONE_NEW flags.
	namespaces uintptr

	stack  []byte // for the child's signal handlers; nil: none
	pinner runtime.Pinner
}

// childPrograms keeps released programs for reuse.
var childPrograms = sync.Pool{New: func() any { return new(childProgram) }}

// clone starts a child that performs the steps. It is written in assembly.
//
//go:noescape
func clone(flags uintptr, steps *syscallStep, status *childStatus) (pid, errno uintptr)

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

// run starts the child. The runtime blocks all signals meanwhile, also for the child.
func (s *childProgram) run() (int, syscall.Errno) {
	beforeFork()
	pid, errno := clone(shareFlags|s.namespaces, &s.steps[0], s.status)
	afterFork()
	if syscall.Errno(errno) == syscall.EINVAL && s.namespaces == 0 {
		return s.runForked()
	}
	return int(pid), syscall.Errno(errno)
}

// shareFlags make the child share our memory, and the kernel clear childStatus.sharing.
const shareFlags = unix.CLONE_VM | unix.CLONE_CHILD_CLEARTID | uintptr(unix.SIGCHLD)

const lastSignal = 64

// maxSteps returns the largest number of steps of a program.
func maxSteps(attr *Attr) int {
	signals := lastSignal
	if attr.ResetSignals != nil {
		signals = len(attr.ResetSignals)
	}
	return signals + len(attr.Limits) + attr.maxSteps() + 16
}

// newChildProgram returns the system calls that start a process.
func newChildProgram(attr *Attr) (*childProgram, error) {
	s := childPrograms.Get().(*childProgram)
	s.status = &childStatus{sharing: 1}
	s.steps = slices.Grow(s.steps[:0], maxSteps(attr))
	s.pinner.Pin(s.status)
	s.pinner.Pin(unsafe.SliceData(s.steps))
	text, err := s.strings(attr)
	if err != nil {
		s.release()
		return nil, err
	}
	s.namespaces = attr.Namespaces
	s.enterGroups(attr.Groups)
	free := s.files(attr)
	s.waitForByte(attr.WaitFD, free)
	if err := s.join(&attr.Join); err != nil {
		s.release()
		return nil, err
	}
	s.keepCapabilities(&attr.Isolation)
	for i := range attr.Limits {
		s.add(StageLimit, unix.SYS_PRLIMIT64, 0, uintptr(attr.Limits[i].Resource), s.limit(&attr.Limits[i]))
	}
	if err := s.clearSignals(attr); err != nil {
		s.release()
		return nil, err
	}
	s.add(StageSession, unix.SYS_SETSID)
	if attr.TTY {
		s.add(StageTTY, unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0)
	}
	if text.dir != 0 {
		s.add(StageDir, unix.SYS_CHDIR, text.dir)
	}
	// Every descriptor of the guest is close-on-exec. This is for one that a future change
	// forgets; kernels without the call return an error, which is ignored.
	s.add(0, unix.SYS_CLOSE_RANGE, free, 1<<32-1, unix.CLOSE_RANGE_CLOEXEC)
	s.add(StageExec, unix.SYS_EXECVE, text.path, text.argv, text.env)
	return s, nil
}

func (s *childProgram) add(stage Stage, nr uintptr, args ...uintptr) {
	st := syscallStep{nr: nr, stage: uintptr(stage)}
	copy(st.args[:], args)
	s.steps = append(s.steps, st)
}

// clearSignals resets handlers before it unblocks signals: they are the guest's, and would
// run on its memory. A handler that only returns may stay until execve resets it, if it
// has a signal stack of its own instead of the guest's.
func (s *childProgram) clearSignals(attr *Attr) error {
	action := &struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}{}
	s.pinner.Pin(action)
	reset := func(sig unix.Signal) {
		s.add(0, unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(action)), 0, 8)
	}
	if attr.ResetSignals != nil {
		for _, sig := range attr.ResetSignals {
			reset(sig)
		}
		place, err := s.signalStack()
		if err != nil {
			return err
		}
		s.add(StageSignals, unix.SYS_SIGALTSTACK, place, 0)
	} else {
		for sig := unix.Signal(1); sig <= lastSignal; sig++ {
			if sig != unix.SIGKILL && sig != unix.SIGSTOP {
				reset(sig)
			}
		}
	}
	none := new(uint64)
	s.pinner.Pin(none)
	s.add(0, unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(none)), 0, 8)
	return nil
}

// signalStack returns the address of the stack_t of the child.
func (s *childProgram) signalStack() (uintptr, error) {
	var err error
	if s.stack, err = signalStacks.get(); err != nil {
		return 0, err
	}
	place := &struct {
		at    uintptr
		flags int32
		size  uintptr
	}{at: uintptr(unsafe.Pointer(unsafe.SliceData(s.stack))), size: stackSize}
	s.pinner.Pin(place)
	return uintptr(unsafe.Pointer(place)), nil
}

// release unpins memory and keeps the program for reuse. The child has detached.
func (s *childProgram) release() {
	s.pinner.Unpin()
	if s.stack != nil {
		signalStacks.put(s.stack)
		s.stack = nil
	}
	s.namespaces = 0
	childPrograms.Put(s)
}

func (s *childProgram) limit(l *Limit) uintptr {
	limit := &[2]uint64{l.Soft, l.Hard}
	s.pinner.Pin(limit)
	return uintptr(unsafe.Pointer(limit))
}

// strings pins the strings of a process in the form that execve takes.
func (s *childProgram) strings(attr *Attr) (t cStrings, err error) {
	if t.path, err = s.text(attr.Path); err != nil {
		return t, err
	}
	if t.argv, err = s.list(attr.Argv); err != nil {
		return t, err
	}
	if t.env, err = s.list(attr.Env); err != nil || attr.Dir == "" {
		return t, err
	}
	t.dir, err = s.text(attr.Dir)
	return t, err
}

func (s *childProgram) text(t string) (uintptr, error) {
	p, err := syscall.BytePtrFromString(t)
	if err != nil {
		return 0, err
	}
	s.pinner.Pin(p)
	return uintptr(unsafe.Pointer(p)), nil
}

func (s *childProgram) list(texts []string) (uintptr, error) {
	pointers, err := syscall.SlicePtrFromStrings(texts)
	if err != nil {
		return 0, err
	}
	list := unsafe.SliceData(pointers)
	s.pinner.Pin(list) // keeps the strings alive too
	return uintptr(unsafe.Pointer(list)), nil
}
