package spawn

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Limit is one resource limit of the new process, soft and hard alike.
type Limit struct {
	Resource int
	Soft     uint64
	Hard     uint64
}

// Attr describes the process to start: leader of a session of its own.
type Attr struct {
	Path   string // as execve takes it: there is no search
	Argv   []string
	Env    []string
	Dir    string  // "" is the caller's
	Files  [3]int  // descriptors above 2 for its 0, 1 and 2
	TTY    bool    // Files[0] is to be its controlling terminal
	Limits []Limit // set after Dir was entered
}

// Stage is how far a failed start came.
type Stage uint32

// The stages.
const (
	StageFork Stage = iota
	StageSession
	StageTTY
	StageDir
	StageLimit
	StageFiles
	StageExec
)

func (s Stage) String() string {
	return [...]string{"fork", "setsid", "terminal", "chdir", "limit", "files", "exec"}[s]
}

// Error says where and why a start failed.
type Error struct {
	Stage Stage
	Errno syscall.Errno
}

func (e *Error) Error() string { return fmt.Sprintf("%v: %v", e.Stage, e.Errno) }

func (e *Error) Unwrap() error { return e.Errno }

// raw is an Attr in the form that needs no further allocation.
type raw struct {
	path   *byte
	argv   **byte
	envv   **byte
	dir    *byte
	files  [3]int
	tty    bool
	limits []Limit
	report int // descriptor on which the child reports a failure
	// words the child works with; on the heap, because of the shared stack
	failure [2]uint32
	mask    uint64
	rlimit  [2]uint64
}

// Start starts the process and returns when the program runs, or could not.
// The error is an *Error. The caller waits for the pid.
func Start(attr *Attr) (int, error) {
	r, err := prepare(attr)
	if err != nil {
		return 0, &Error{StageExec, syscall.EINVAL}
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, &Error{StageFork, err.(syscall.Errno)}
	}
	defer unix.Close(pipe[0])
	r.report = pipe[1]
	pid, errno := forkExec(r)
	afterFork()
	runtime.KeepAlive(r)
	unix.Close(pipe[1])
	if errno != 0 {
		return 0, &Error{StageFork, syscall.Errno(errno)}
	}
	if failure := outcome(pipe[0]); failure != nil {
		return 0, failure
	}
	return int(pid), nil
}

// outcome reads the child's report: nothing if the program took over, because
// the descriptor closed itself then. A child that failed is dead, and reaped by
// whoever reaps; its pid is nobody's concern.
func outcome(fd int) *Error {
	var report [8]byte
	for {
		n, err := unix.Read(fd, report[:])
		switch {
		case err == unix.EINTR:
			continue
		case n == len(report):
			return &Error{
				Stage(min(binary.NativeEndian.Uint32(report[:]), uint32(StageExec))),
				syscall.Errno(binary.NativeEndian.Uint32(report[4:])),
			}
		default:
			return nil
		}
	}
}

func prepare(attr *Attr) (*raw, error) {
	r := &raw{files: attr.Files, tty: attr.TTY, limits: attr.Limits}
	path, err := syscall.BytePtrFromString(attr.Path)
	if err != nil {
		return nil, err
	}
	argv, err := syscall.SlicePtrFromStrings(attr.Argv)
	if err != nil {
		return nil, err
	}
	envv, err := syscall.SlicePtrFromStrings(attr.Env)
	if err != nil {
		return nil, err
	}
	r.path, r.argv, r.envv = path, unsafe.SliceData(argv), unsafe.SliceData(envv)
	if attr.Dir != "" {
		r.dir, err = syscall.BytePtrFromString(attr.Dir)
	}
	return r, err
}
