package spawn

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// step is one system call of the child, as the assembly reads it.
type step struct {
	nr    uintptr
	args  [6]uintptr
	stage uintptr // reported if it fails; 0: that does not matter
}

// report is what the child writes, as the assembly knows it.
type report struct {
	fd    uintptr
	stage uint32 //nolint:unused // written in assembly
	errno uint32 //nolint:unused // written in assembly
}

// texts are where the kernel finds what is text; dir is 0 if there is none.
type texts struct{ path, argv, env, dir uintptr }

// script is all that a child does, and what its steps point to. It is pinned
// where it is until the child is done with it.
type script struct {
	steps  []step
	report *report
	pinner runtime.Pinner
}

// clone starts a child that performs the steps. It is written in assembly.
//
//go:noescape
func clone(steps *step, report *report) (pid, errno uintptr)

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

// run starts the child. The runtime blocks all signals meanwhile, so that the
// child begins without any.
func (s *script) run() (int, syscall.Errno) {
	beforeFork()
	pid, errno := clone(&s.steps[0], s.report)
	afterFork()
	return int(pid), syscall.Errno(errno)
}

const lastSignal = 64

// newScript writes down what the child does.
func newScript(attr *Attr, reportTo int) (*script, error) {
	s := &script{report: &report{fd: uintptr(reportTo)}, steps: make([]step, 0, lastSignal+16+len(attr.Limits))}
	s.pinner.Pin(s.report)
	s.pinner.Pin(unsafe.SliceData(s.steps))
	text, err := s.strings(attr)
	if err != nil {
		s.pinner.Unpin()
		return nil, err
	}
	for i := range attr.Limits {
		s.add(StageLimit, unix.SYS_PRLIMIT64, 0, uintptr(attr.Limits[i].Resource), s.limit(&attr.Limits[i]))
	}
	s.clearSignals()
	s.add(StageSession, unix.SYS_SETSID)
	if attr.TTY {
		s.add(StageTTY, unix.SYS_IOCTL, uintptr(attr.Files[0]), unix.TIOCSCTTY, 0)
	}
	if text.dir != 0 {
		s.add(StageDir, unix.SYS_CHDIR, text.dir)
	}
	for i, fd := range attr.Files {
		s.add(StageFiles, unix.SYS_DUP3, uintptr(fd), uintptr(i), 0)
	}
	// Every descriptor of the guest closes itself on exec. This is for one that
	// a future change forgets; a kernel that cannot do it says so, harmlessly.
	s.add(0, unix.SYS_CLOSE_RANGE, 3, 1<<32-1, unix.CLOSE_RANGE_CLOEXEC)
	s.add(StageExec, unix.SYS_EXECVE, text.path, text.argv, text.env)
	return s, nil
}

func (s *script) add(stage Stage, nr uintptr, args ...uintptr) {
	st := step{nr: nr, stage: uintptr(stage)}
	copy(st.args[:], args)
	s.steps = append(s.steps, st)
}

// clearSignals takes away every handler before it lets signals in again: the
// handlers are the guest's, and so is the memory they would work on.
func (s *script) clearSignals() {
	action := &struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}{}
	s.pinner.Pin(action)
	for sig := unix.Signal(1); sig <= lastSignal; sig++ {
		if sig != unix.SIGKILL && sig != unix.SIGSTOP {
			s.add(0, unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(action)), 0, 8)
		}
	}
	none := new(uint64)
	s.pinner.Pin(none)
	s.add(0, unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(none)), 0, 8)
}

func (s *script) limit(l *Limit) uintptr {
	limit := &[2]uint64{l.Soft, l.Hard}
	s.pinner.Pin(limit)
	return uintptr(unsafe.Pointer(limit))
}

// strings puts everything that is text where the kernel can read it.
func (s *script) strings(attr *Attr) (t texts, err error) {
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

func (s *script) text(t string) (uintptr, error) {
	p, err := syscall.BytePtrFromString(t)
	if err != nil {
		return 0, err
	}
	s.pinner.Pin(p)
	return uintptr(unsafe.Pointer(p)), nil
}

func (s *script) list(texts []string) (uintptr, error) {
	pointers, err := syscall.SlicePtrFromStrings(texts)
	if err != nil {
		return 0, err
	}
	list := unsafe.SliceData(pointers)
	s.pinner.Pin(list) // what it points to lives as long
	return uintptr(unsafe.Pointer(list)), nil
}
