package linux

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/spawn"
	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"github.com/atoll-run/atoll/internal/runtime/cgroups"
)

// initProcess is the init process of a sandbox while it waits for its blueprint.
// It ends when the process that started it ends.
type initProcess struct {
	control *os.File
	run     *runState
}

// startInit begins to start the init process of the sandbox, in the control group.
// The returned function waits for the process; it is called once.
func (i *Instance) startInit(guest string, group *cgroups.Group) (func() (*initProcess, error), error) {
	user, err := userOf(i.record.Spec.User)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(i.path(logFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return startInitAsync(guest, user, log, group)
}

// startInitAsync starts the init process in a goroutine. The caller may close the
// log.
func startInitAsync(guest string, user account, log *os.File, group *cgroups.Group) (func() (*initProcess, error), error) {
	program, err := os.Open(guest)
	if err != nil {
		return nil, err
	}
	copied, err := unix.FcntlInt(log.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	own := os.NewFile(uintptr(copied), log.Name())
	var e *initProcess
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _, _ = own.Close(), program.Close() }()
		e, err = startInit(program, user, own, group)
	}()
	return func() (*initProcess, error) { <-done; return e, err }, nil
}

// startInit starts an init process from a program, which waits for a blueprint.
func startInit(program *os.File, user account, log *os.File, group *cgroups.Group) (_ *initProcess, err error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	groups, err := group.Entrances()
	defer closeFiles(groups)
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	pid, err := launch(&initFiles{control: ours, theirs: theirs, program: program, log: log, groups: groups}, user)
	if err != nil {
		return nil, errors.Join(explainRefusal(err), ours.Close())
	}
	e := &initProcess{control: ours, run: &runState{PID: pid}}
	if e.run, err = newRunState(pid); err != nil {
		e.run = &runState{PID: pid}
		return nil, errors.Join(err, e.abort())
	}
	return e, nil
}

func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control"), nil
}

// abort ends a process that is not a sandbox yet; nil is allowed.
func (e *initProcess) abort() error {
	if e == nil {
		return nil
	}
	_ = e.control.Close()
	_ = unix.Kill(e.run.PID, unix.SIGKILL)
	_, _ = unix.Wait4(e.run.PID, nil, 0, nil)
	return nil
}

// initFiles are the files that an init process is started with.
type initFiles struct {
	control, theirs *os.File // the two ends
	program         *os.File
	log             *os.File   // nil for none
	groups          []*os.File // see cgroups.Group.Entrances
}

// busyTries and busyPause bound the retries after ETXTBSY: a program that was
// written a moment ago cannot be executed while the child of another thread, which
// has not executed its own program yet, has it open.
const (
	busyTries = 200
	busyPause = 5 * time.Millisecond
)

// launch executes the guest in new namespaces.
func launch(c *initFiles, user account) (pid int, err error) {
	for try := 1; ; try++ {
		pid, err = c.launch(user)
		if !errors.Is(err, syscall.ETXTBSY) || try == busyTries {
			return pid, err
		}
		time.Sleep(busyPause)
	}
}

// setupEnv configures the Go runtime of a process that lives for milliseconds: one
// processor, no garbage collection.
var setupEnv = []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"}

// launch starts the process, which waits for a byte on its end of the control
// socket until its user is mapped.
func (c *initFiles) launch(user account) (pid int, err error) {
	fds, err := c.descriptors()
	defer closeAll(fds)
	if err != nil {
		return 0, err
	}
	const null, log, control, program, groups = 0, 1, 2, 3, 4
	child, err := spawn.Begin(&spawn.Attr{
		Path: fmt.Sprintf("/proc/self/fd/%d", blueprint.Program), Argv: []string{"atoll-guest", "setup"}, Env: setupEnv, Dir: "/",
		Files: [3]int{fds[null], fds[log], fds[log]},
		Isolation: spawn.Isolation{
			Namespaces: namespaces, Groups: fds[groups:], WaitFD: fds[control], Ambient: user.ambient(),
			Inherit: []int{fds[control], fds[program]},
		},
	})
	if err != nil {
		return 0, err
	}
	if err = user.mapAndExecute(child, c.control); err != nil {
		_ = unix.Kill(child.PID, unix.SIGKILL)
		_, _ = unix.Wait4(child.PID, nil, 0, nil)
		return 0, err
	}
	return child.PID, nil
}

// mapAndExecute maps the user of a new process and lets it execute its program.
// Root maps first: a program that is executed by an unmapped user has no
// capabilities. Other users map afterwards, because the child shares their memory
// until it executes, and the kernel gives the files in /proc of a process with
// private memory to root. They pass ambient capabilities on instead, and the
// program waits for its blueprint.
func (a account) mapAndExecute(child *spawn.Child, gate *os.File) (err error) {
	if privileged() {
		err = a.writeIDMaps(child.PID)
	}
	if err == nil {
		_, err = gate.Write([]byte{0})
	}
	if err != nil {
		_ = unix.Kill(child.PID, unix.SIGKILL) // so that it stops using our memory
	}
	if err = errors.Join(err, child.Await()); err != nil || privileged() {
		return err
	}
	// Its files in /proc belong to us a moment after it has left our memory.
	for end := time.Now().Add(showPatience); ; time.Sleep(showPause) {
		if err = a.writeIDMaps(child.PID); !errors.Is(err, unix.EACCES) || time.Now().After(end) {
			return err
		}
	}
}

const (
	showPatience = 2 * time.Second
	showPause    = 200 * time.Microsecond
)

// firstCopy is above all descriptors that a child gets, so that none is replaced
// by another before it is copied.
const firstCopy = 16

// descriptors are copies of those that the child gets.
func (c *initFiles) descriptors() (fds []int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	log := c.log
	if log == nil {
		log = null
	}
	for _, file := range append([]*os.File{null, log, c.theirs, c.program}, c.groups...) {
		fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, firstCopy)
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// reap waits for the end of a child without keeping a thread.
func reap(pid int) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		_, _ = unix.Wait4(pid, nil, 0, nil)
		return
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	defer file.Close()
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(uintptr) bool {
		reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return reaped == pid || err != nil && !errors.Is(err, unix.EINTR)
	})
}
