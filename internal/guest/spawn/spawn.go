package spawn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"time"

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
}

// Stage is how far a failed start came.
type Stage uint32

// The stages.
const (
	StageFork Stage = iota + 1
	StageSession
	StageTTY
	StageLimit
	StageDir
	StageFiles
	StageExec
	StageStalled // somebody stopped it before the program ran
)

func (s Stage) String() string {
	return [...]string{"start", "fork", "setsid", "terminal", "limit", "chdir", "files", "exec", "stalled"}[s]
}

// Error says where and why a start failed.
type Error struct {
	Stage Stage
	Errno syscall.Errno
}

func (e *Error) Error() string { return fmt.Sprintf("%v: %v", e.Stage, e.Errno) }

func (e *Error) Unwrap() error { return e.Errno }

// patience is how long a new process may take until its program runs. A host
// waits longer than that for what it asked.
const patience = 2 * time.Second

// Child is a process on its way to become a program.
type Child struct {
	PID    int
	report int // reading end of the pipe on which it reports
	script *script
}

// Begin makes the process. Whoever reaps must know it from now on. An error is
// an *Error, and means that there is none.
func Begin(attr *Attr) (*Child, error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		errno, _ := errors.AsType[syscall.Errno](err)
		return nil, &Error{StageFork, errno}
	}
	defer unix.Close(pipe[1])
	script, err := newScript(attr, pipe[1])
	if err != nil {
		unix.Close(pipe[0])
		return nil, &Error{StageExec, syscall.EINVAL}
	}
	pid, errno := script.run()
	if errno != 0 {
		script.pinner.Unpin()
		unix.Close(pipe[0])
		return nil, &Error{StageFork, errno}
	}
	return &Child{pid, pipe[0], script}, nil
}

// Await returns when the program runs, or could not be run; then the error is
// an *Error, and the process has ended. It must be called once.
func (c *Child) Await() error {
	defer c.script.pinner.Unpin() // not before the child has left our memory
	defer unix.Close(c.report)
	if failure := c.outcome(); failure != nil {
		return failure
	}
	return nil
}

// outcome reads the child's report: nothing if the program took over, because
// the descriptor closed itself then.
func (c *Child) outcome() *Error {
	stalled := !readable(c.report, patience)
	if stalled {
		_ = unix.Kill(c.PID, unix.SIGKILL)
	}
	var report [8]byte
	n, err := unix.Read(c.report, report[:])
	for err == unix.EINTR {
		n, err = unix.Read(c.report, report[:])
	}
	switch {
	case n == len(report):
		return &Error{Stage(binary.NativeEndian.Uint32(report[:])), syscall.Errno(binary.NativeEndian.Uint32(report[4:]))}
	case stalled:
		return &Error{StageStalled, syscall.ETIMEDOUT}
	}
	return nil
}

// readable waits until fd can be read, at most for d.
func readable(fd int, d time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for deadline := time.Now().Add(d); ; {
		n, err := unix.Poll(fds, int(time.Until(deadline)/time.Millisecond)+1)
		if n > 0 || err != nil && err != unix.EINTR {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
