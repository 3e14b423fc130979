package spawn

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Limit is one resource limit of the new process.
type Limit struct {
	Resource int
	Soft     uint64
	Hard     uint64
}

// Attr describes the process to start. It leads a session of its own, with no signal
// blocked, ignored or handled.
type Attr struct {
	Path   string // for execve; not searched
	Argv   []string
	Env    []string
	Dir    string // "" is the caller's
	Files  [3]int // descriptors above 2 for its 0, 1 and 2
	TTY    bool   // Files[0] is to be its controlling terminal
	Limits []Limit
	// ResetSignals are the signals to reset, if all others of the caller have handlers
	// that only return. Nil: all are reset.
	ResetSignals []unix.Signal
	Isolation
}

// Stage is the step at which a start failed.
type Stage uint32

// The stages.
const (
	StageFork Stage = iota + 1
	StageSession
	StageTTY
	StageLimit
	StageSignals
	StageDir
	StageFiles
	StageExec
	StageCapabilities
	StageStalled // it was stopped by a signal before the program ran
	StageGroup
	StageNamespaces
)

func (s Stage) String() string {
	return [...]string{"start", "fork", "setsid", "terminal", "limit", "signals", "chdir", "files", "exec", "capabilities", "stalled", "control group", "namespaces"}[s]
}

// Error says where and why a start failed.
type Error struct {
	Stage Stage
	Errno syscall.Errno
}

func (e *Error) Error() string { return fmt.Sprintf("%v: %v", e.Stage, e.Errno) }

func (e *Error) Unwrap() error { return e.Errno }

// startTimeout is how long a new process may take until its program runs. Hosts wait
// longer for an answer.
const startTimeout = 2 * time.Second

// Child is a new process whose program may not run yet.
type Child struct {
	PID     int
	program *childProgram
}

// Begin starts the process, which has to be reaped from now on. An error is an *Error, and
// means that there is no process.
func Begin(attr *Attr) (*Child, error) {
	program, err := newChildProgram(attr)
	if errors.Is(err, syscall.ENOMEM) {
		return nil, &Error{StageFork, syscall.ENOMEM}
	}
	if err != nil {
		return nil, &Error{StageExec, syscall.EINVAL}
	}
	pid, errno := program.run()
	if errno != 0 {
		program.release()
		return nil, &Error{StageFork, errno}
	}
	return &Child{pid, program}, nil
}

// Await returns when the program runs, or could not be run; then the error is an *Error,
// and the process has ended. Call either Await or Result, once.
func (c *Child) Await() error {
	stalled := !c.program.waitDetached(startTimeout)
	if stalled {
		_ = unix.Kill(c.PID, unix.SIGKILL)
		if !c.program.waitDetached(startTimeout) { // blocked in the kernel
			go c.program.releaseWhenDetached()
			return &Error{StageStalled, syscall.ETIMEDOUT}
		}
	}
	err := c.Result()
	if err == nil && stalled {
		return &Error{StageStalled, syscall.ETIMEDOUT}
	}
	return err
}

// Result is Await for a child that has ended.
func (c *Child) Result() error {
	status := c.program.status
	c.program.release()
	if status.stage != 0 {
		return &Error{Stage(status.stage), syscall.Errno(status.errno)}
	}
	return nil
}

// waitDetached waits until the child does not share our memory any more, at most for d.
func (s *childProgram) waitDetached(d time.Duration) bool {
	deadline := time.Now().Add(d)
	for atomic.LoadUint32(&s.status.sharing) != 0 {
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		awaitZero(&s.status.sharing, left)
	}
	return true
}

// awaitZero sleeps until the kernel clears the word, at most for d. It may return early.
func awaitZero(word *uint32, d time.Duration) {
	timeout := unix.NsecToTimespec(d.Nanoseconds())
	const wait = 0 // FUTEX_WAIT; not private, as the kernel's own wake is not
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wait, 1, uintptr(unsafe.Pointer(&timeout)), 0, 0)
}

// releaseWhenDetached releases the program when the child does not use it any more.
func (s *childProgram) releaseWhenDetached() {
	for atomic.LoadUint32(&s.status.sharing) != 0 {
		time.Sleep(startTimeout)
	}
	s.release()
}
