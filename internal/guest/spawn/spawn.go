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

// Attr describes the process to start: leader of a session of its own, with no
// signal blocked, ignored or handled.
type Attr struct {
	Path   string // as execve takes it: there is no search
	Argv   []string
	Env    []string
	Dir    string // "" is the caller's
	Files  [3]int // descriptors above 2 for its 0, 1 and 2
	TTY    bool   // Files[0] is to be its controlling terminal
	Limits []Limit
	// Loud are the signals to be cleared, if all others of the caller have
	// handlers that do nothing but return. Nil: all are cleared.
	ResetSignals []unix.Signal
	Isolation
}

// Stage is how far a failed start came.
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
	StageStalled // somebody stopped it before the program ran
	StageGroup
)

func (s Stage) String() string {
	return [...]string{"start", "fork", "setsid", "terminal", "limit", "signals", "chdir", "files", "exec", "capabilities", "stalled", "control group"}[s]
}

// Error says where and why a start failed.
type Error struct {
	Stage Stage
	Errno syscall.Errno
}

func (e *Error) Error() string { return fmt.Sprintf("%v: %v", e.Stage, e.Errno) }

func (e *Error) Unwrap() error { return e.Errno }

// startTimeout is how long a new process may take until its program runs. A host
// waits longer than that for what it asked.
const startTimeout = 2 * time.Second

// Child is a process on its way to become a program.
type Child struct {
	PID     int
	program *childProgram
}

// Begin makes the process. Whoever reaps must know it from now on. An error is
// an *Error, and means that there is none.
func Begin(attr *Attr) (*Child, error) {
	script, err := newChildProgram(attr)
	if errors.Is(err, syscall.ENOMEM) {
		return nil, &Error{StageFork, syscall.ENOMEM}
	}
	if err != nil {
		return nil, &Error{StageExec, syscall.EINVAL}
	}
	pid, errno := script.run()
	if errno != 0 {
		script.release()
		return nil, &Error{StageFork, errno}
	}
	return &Child{pid, script}, nil
}

// Await returns when the program runs, or could not be run; then the error is
// an *Error, and the process has ended. Either it or Verdict is called, once.
func (c *Child) Await() error {
	stalled := !c.program.waitDetached(startTimeout)
	if stalled {
		_ = unix.Kill(c.PID, unix.SIGKILL)
		if !c.program.waitDetached(startTimeout) { // the kernel holds it: nothing else ends a process that late
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

// Result is Await for a child that is known to have ended.
func (c *Child) Result() error {
	trace := c.program.status
	c.program.release()
	if trace.stage != 0 {
		return &Error{Stage(trace.stage), syscall.Errno(trace.errno)}
	}
	return nil
}

// waitDetached waits until the child has left our memory, at most for d.
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

// awaitZero sleeps until the kernel has cleared the word, or for d; it may
// return early.
func awaitZero(word *uint32, d time.Duration) {
	timeout := unix.NsecToTimespec(d.Nanoseconds())
	const wait = 0 // FUTEX_WAIT; not private, as the kernel's own wake is not
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wait, 1, uintptr(unsafe.Pointer(&timeout)), 0, 0)
}

// releaseWhenDetached keeps what the child uses for as long as it does.
func (s *childProgram) releaseWhenDetached() {
	for atomic.LoadUint32(&s.status.sharing) != 0 {
		time.Sleep(startTimeout)
	}
	s.release()
}
