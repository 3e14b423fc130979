package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/cgroup"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/walls"
)

// namespaces are those that a process can be born into. The others it makes
// itself (see guest/enclose).
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// embryo is a process that waits for its blueprint. It ends by itself if
// whoever started it does.
type embryo struct {
	cmd     *exec.Cmd
	control *os.File
	life    *life
}

// Start makes the sandbox run; nothing to do if it does.
func (i *Instance) Start(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.look(); err != nil {
		return err
	}
	if i.record.Life.alive() {
		return nil
	}
	if err := i.begin(ctx); err != nil {
		return fmt.Errorf("sandbox %q: start: %w", i.name, err)
	}
	i.note()
	return nil
}

func (i *Instance) begin(ctx context.Context) (err error) {
	guest, err := i.runtime.shelf.program()
	if err != nil {
		return err
	}
	if err := errors.Join(i.seal(), i.clear()); err != nil {
		return err
	}
	group, err := i.makeGroup(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, group.Remove(context.WithoutCancel(ctx)))
		}
	}()
	d, err := i.draw(guest, groupViews(group))
	if err != nil {
		return err
	}
	defer d.sources.close()
	log, err := os.OpenFile(i.path(logFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	program, err := os.Open(guest)
	if err != nil {
		return err
	}
	defer program.Close()
	e, err := conceive(program, d, log)
	if err != nil {
		return err
	}
	return i.bear(e, d, group)
}

// clear removes what an earlier life left where the guest looks first.
func (i *Instance) clear() error {
	if err := os.RemoveAll(i.path(wireDir)); err != nil {
		return err
	}
	if err := os.Mkdir(i.path(wireDir), 0o700); err != nil {
		return err
	}
	user, err := userOf(i.record.Spec.User)
	if err != nil || !privileged() {
		return err
	}
	return os.Lchown(i.path(wireDir), user.uid, user.gid)
}

// makeGroup makes the control group of a life, if it has limits to keep.
func (i *Instance) makeGroup(ctx context.Context) (*cgroup.Group, error) {
	limits := groupLimits(i.record.Spec.Limits)
	if limits.None() {
		return &cgroup.Group{}, nil
	}
	host, err := i.runtime.groups()
	if err != nil {
		return nil, err
	}
	if err := host.Existing(i.record.Summary.ID).Remove(ctx); err != nil {
		return nil, err
	}
	return host.Make(i.record.Summary.ID, limits)
}

// conceive starts the process. It can do nothing yet but wait.
func conceive(program *os.File, d *draft, log *os.File) (_ *embryo, err error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd, err := launch(append([]*os.File{theirs, program}, d.sources.files...), account{d.UID, d.GID}, log)
	if err != nil {
		_ = ours.Close()
		return nil, forbidden(err)
	}
	e := &embryo{cmd: cmd, control: ours}
	if e.life, err = newLife(cmd.Process.Pid); err != nil {
		return nil, errors.Join(err, e.abort())
	}
	return e, nil
}

// busyTries and busyPause: a program that was written a moment ago cannot be
// executed while another thread's child, on its way to be something else, still
// has it open.
const (
	busyTries = 200
	busyPause = 5 * time.Millisecond
)

// launch executes the guest, which is the second of files, in new namespaces.
func launch(files []*os.File, user account, log *os.File) (*exec.Cmd, error) {
	for try := 1; ; try++ {
		attr := &syscall.SysProcAttr{Cloneflags: namespaces, Setsid: true}
		user.mapUser(attr)
		// The sandbox outlives this process, so it is not bound to a context.
		cmd := exec.Command(fmt.Sprintf("/proc/self/fd/%d", walls.Control+1), "enclose") //nolint:noctx // see above
		cmd.SysProcAttr, cmd.ExtraFiles, cmd.Dir, cmd.Env = attr, files, "/", []string{}
		if log != nil {
			cmd.Stdout, cmd.Stderr = log, log
		}
		err := cmd.Start()
		if !errors.Is(err, syscall.ETXTBSY) || try == busyTries {
			return cmd, err
		}
		time.Sleep(busyPause)
	}
}

func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control"), nil
}

// abort ends a process that is not a sandbox yet.
func (e *embryo) abort() error {
	_ = e.control.Close()
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
	return nil
}

// bear lets the process become the sandbox. The record comes first: whatever
// runs from then on is found by it.
func (i *Instance) bear(e *embryo, d *draft, group *cgroup.Group) error {
	if err := group.Add(e.life.PID); err != nil {
		return errors.Join(err, e.abort())
	}
	i.record.Life = e.life
	if err := i.record.save(i.dir); err != nil {
		return errors.Join(err, e.abort())
	}
	if err := e.deliver(&d.Blueprint); err != nil {
		err = errors.Join(explain(err, d.spec), e.abort())
		i.record.Life = nil
		return errors.Join(err, i.record.save(i.dir))
	}
	_ = e.control.Close()
	go func() { _ = e.cmd.Wait() }() // while we live, it is our child
	return nil
}

// deliver hands over the blueprint and hears what became of it. The guest runs
// when the other end of the wire closes after good news.
func (e *embryo) deliver(plan *walls.Blueprint) error {
	if err := walls.Send(e.control, plan); err != nil {
		return fmt.Errorf("the new process does not listen: %w", err)
	}
	var report walls.Report
	if err := walls.Receive(e.control, &report); err != nil {
		return fmt.Errorf("the new process ended: %w", err)
	}
	if !report.OK {
		return &buildError{report}
	}
	if err := walls.Receive(e.control, &report); err == nil {
		return &buildError{report} // the guest could not be executed
	}
	return nil
}

// buildError is what kept the walls from being built.
type buildError struct{ walls.Report }

func (e *buildError) Error() string { return e.Step + ": " + e.Report.Error }

func (e *buildError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return syscall.Errno(e.Errno)
}

// explain adds what to do about the failures that a configuration or the host
// causes.
func explain(err error, spec *sandbox.Spec) error {
	failed, ok := errors.AsType[*buildError](err)
	if !ok {
		return err
	}
	switch {
	case errors.Is(err, unix.ESTALE):
		return fmt.Errorf("%w: %w", err, sandbox.ErrDenied)
	case failed.Step == "workdir":
		return advice.With(err, "the sandbox's user may not enter "+spec.Workdir+": change docker.user, or the directory's owner")
	case failed.Step == "limits":
		return advice.With(err, "a limit above this process's own cannot be given: lower docker.ulimits")
	}
	return err
}
