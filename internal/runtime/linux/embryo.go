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

// embryo is a process that waits for its blueprint. It ends by itself if
// whoever started it does.
type embryo struct {
	control *os.File
	life    *life
}

// conceive begins to start a process for the sandbox, in the control group. The
// result is called once, for the process.
func (i *Instance) conceive(guest string, group *cgroups.Group) (func() (*embryo, error), error) {
	user, err := userOf(i.record.Spec.User)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(i.path(logFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return conceiveSoon(guest, user, log, group)
}

// conceiveSoon does it while the caller goes on, who may close the log.
func conceiveSoon(guest string, user account, log *os.File, group *cgroups.Group) (func() (*embryo, error), error) {
	program, err := os.Open(guest)
	if err != nil {
		return nil, err
	}
	copied, err := unix.FcntlInt(log.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	own := os.NewFile(uintptr(copied), log.Name())
	var e *embryo
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _, _ = own.Close(), program.Close() }()
		e, err = conceive(program, user, own, group)
	}()
	return func() (*embryo, error) { <-done; return e, err }, nil
}

// conceive starts a process from a program. It can do nothing yet but wait.
func conceive(program *os.File, user account, log *os.File, group *cgroups.Group) (_ *embryo, err error) {
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
	pid, err := launch(&cradle{control: ours, theirs: theirs, program: program, log: log, groups: groups}, user)
	if err != nil {
		return nil, errors.Join(forbidden(err), ours.Close())
	}
	e := &embryo{control: ours, life: &life{PID: pid}}
	if e.life, err = newLife(pid); err != nil {
		e.life = &life{PID: pid}
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

// abort ends a process that is not a sandbox yet, if there is one.
func (e *embryo) abort() error {
	if e == nil {
		return nil
	}
	_ = e.control.Close()
	_ = unix.Kill(e.life.PID, unix.SIGKILL)
	_, _ = unix.Wait4(e.life.PID, nil, 0, nil)
	return nil
}

// cradle is what a process is born with.
type cradle struct {
	control, theirs *os.File // the two ends
	program         *os.File
	log             *os.File   // nil if nobody wants to read it
	groups          []*os.File // see cgroups.Group.Entrances
}

// busyTries and busyPause: a program that was written a moment ago cannot be
// executed while another thread's child, on its way to be something else, still
// has it open.
const (
	busyTries = 200
	busyPause = 5 * time.Millisecond
)

// launch executes the guest in new namespaces.
func launch(c *cradle, user account) (pid int, err error) {
	for try := 1; ; try++ {
		pid, err = c.launch(user)
		if !errors.Is(err, syscall.ETXTBSY) || try == busyTries {
			return pid, err
		}
		time.Sleep(busyPause)
	}
}

// quick keeps the Go runtime of a process that lives for milliseconds from
// preparing for more: one processor, no collection.
var quick = []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"}

// launch has the process wait at its gate, which is its end of the control
// socket, until it is somebody.
func (c *cradle) launch(user account) (pid int, err error) {
	fds, err := c.descriptors()
	defer closeAll(fds)
	if err != nil {
		return 0, err
	}
	const null, log, control, program, groups = 0, 1, 2, 3, 4
	child, err := spawn.Begin(&spawn.Attr{
		Path: fmt.Sprintf("/proc/self/fd/%d", blueprint.Program), Argv: []string{"atoll-guest", "setup"}, Env: quick, Dir: "/",
		Files: [3]int{fds[null], fds[log], fds[log]},
		Isolation: spawn.Isolation{
			Namespaces: namespaces, Groups: fds[groups:], WaitFD: fds[control], Ambient: user.ambient(),
			Inherit: []int{fds[control], fds[program]},
		},
	})
	if err != nil {
		return 0, err
	}
	if err = user.born(child, c.control); err != nil {
		_ = unix.Kill(child.PID, unix.SIGKILL)
		_, _ = unix.Wait4(child.PID, nil, 0, nil)
		return 0, err
	}
	return child.PID, nil
}

// born makes a process somebody, and a program. Root does so in this order: a
// program that nobody starts has none of his capabilities. Others cannot, if their
// memory is private: the kernel then gives what is in /proc of the child, which
// shares that memory until it is a program, to root. The capabilities that they
// hand over are kept, and the program waits for its blueprint.
func (a account) born(child *spawn.Child, gate *os.File) (err error) {
	if privileged() {
		err = a.become(child.PID)
	}
	if err == nil {
		_, err = gate.Write([]byte{0})
	}
	if err != nil {
		_ = unix.Kill(child.PID, unix.SIGKILL) // it must leave our memory all the same
	}
	if err = errors.Join(err, child.Await()); err != nil || privileged() {
		return err
	}
	// It has left our memory a moment before it has one of its own to show.
	for end := time.Now().Add(showPatience); ; time.Sleep(showPause) {
		if err = a.become(child.PID); !errors.Is(err, unix.EACCES) || time.Now().After(end) {
			return err
		}
	}
}

const (
	showPatience = 2 * time.Second
	showPause    = 200 * time.Microsecond
)

// firstCopy is above all descriptors that a child gets, so that none is covered
// by another before it is copied.
const firstCopy = 16

// descriptors are copies of those that the child gets.
func (c *cradle) descriptors() (fds []int, err error) {
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
