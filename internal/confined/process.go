package confined

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

// Limits bound one process. Zero fields take the defaults.
type Limits struct {
	Memory int64         // address space; 1 GiB
	File   int64         // one written file; 1 GiB
	CPU    time.Duration // 2 minutes
}

func (l Limits) withDefaults() Limits {
	return Limits{Memory: cmp.Or(max(l.Memory, 0), 1<<30), File: cmp.Or(max(l.File, 0), 1<<30), CPU: cmp.Or(max(l.CPU, 0), 2*time.Minute)}
}

// Program is what to run.
type Program struct {
	Path   string
	Args   []string // without the name
	Env    []string // all of it
	Stdin  io.Reader
	Stdout io.Writer
	Limits Limits
	// Files are further descriptors that it gets, from 3 on.
	Files []*os.File
	// Network leaves it the host's network. Such a program reads nothing that an
	// agent wrote but what was checked.
	Network bool
}

// maxStderr is how much of standard error is kept.
const maxStderr = 2048

// Run runs a program until its end. The error of one that failed is an *Error.
func Run(ctx context.Context, p *Program) error {
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	complaint := &tailbuf.Writer{Most: maxStderr}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = "/", p.Env, p.Stdout, complaint, p.Files
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = namespaces(p.Network)
	feed, err := delayedStdin(cmd, p.Stdin)
	if err != nil {
		return err
	}
	if err := secret.StartChild(cmd.Start); err != nil {
		return explainStart(p.Path, err)
	}
	if err := limit(cmd.Process.Pid, p.Limits.withDefaults()); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	feed()
	if err := cmd.Wait(); err != nil {
		return &Error{Message: oneLine(complaint.Bytes()), cause: err}
	}
	return nil
}

// namespaces returns the namespaces of a process: it has rights only over what its
// user owns.
func namespaces(network bool) *syscall.SysProcAttr {
	own := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWIPC | unix.CLONE_NEWPID)
	if !network {
		own |= unix.CLONE_NEWNET
	}
	return &syscall.SysProcAttr{
		Cloneflags:  own,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
	}
}

// limit bounds a process that has read nothing yet.
func limit(pid int, l Limits) error {
	for _, bound := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"memory", unix.RLIMIT_AS, uint64(l.Memory)},
		{"file size", unix.RLIMIT_FSIZE, uint64(l.File)},
		{"processor time", unix.RLIMIT_CPU, uint64(l.CPU.Seconds())},
		{"core", unix.RLIMIT_CORE, 0},
	} {
		rlimit := unix.Rlimit{Cur: bound.value, Max: bound.value}
		if err := unix.Prlimit(pid, bound.resource, &rlimit, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("limit its %s: %w", bound.name, err)
		}
	}
	return nil
}

// delayedStdin gives the process a standard input that has no data until open is
// called.
func delayedStdin(cmd *exec.Cmd, stdin io.Reader) (open func(), err error) {
	if stdin == nil {
		return func() {}, nil
	}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return func() {
		go func() {
			_, _ = io.Copy(pipe, stdin) // the exit status reports the error
			_ = pipe.Close()
		}()
	}, nil
}

func explainStart(program string, err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL) {
		return errhint.With(fmt.Errorf("%s cannot be confined on this host: %w", program, err),
			"`atoll doctor` says why user namespaces are not available, and what to do")
	}
	return fmt.Errorf("start %s: %w", program, err)
}
