package vmcmd

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/vm"
)

const (
	endPatience = 10 * time.Second // that a program has after a signal, until its connection is closed
	signalled   = 128              // and the number of a signal are the exit code of what it ended
)

// signalNames are the signals that are passed on to the program inside.
var signalNames = map[os.Signal]string{os.Interrupt: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP"}

// run runs a program inside in the place of this one, and returns its exit code. ssh, which
// limactl starts, is in this process group: it has the terminal, its size and its keys.
// Signals go to the program inside; ssh knows no way for them.
func (c *command) run(ctx context.Context, p *vm.Process) error {
	ctx = context.WithoutCancel(ctx)
	defer c.keepTerminal()()
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.In, c.Out, c.Err
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(asked)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended, passed := make(chan struct{}), make(chan struct{})
	go func() { defer close(passed); passOn(ctx, p, cmd.Process, asked, ended) }()
	err := cmd.Wait()
	close(ended)
	<-passed
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	code := exitCode(exit.ProcessState)
	if code > signalled { // perhaps only the connection ended
		_ = p.Signal(ctx, "HUP")
	}
	return c.Exit(cmp.Or(max(code, 0), 1))
}

// keepTerminal returns what gives the terminal the state again that it has now: an ssh that
// is killed leaves it as it was for the program inside.
func (c *command) keepTerminal() (restore func()) {
	f, ok := c.In.(*os.File)
	if !ok {
		return func() {}
	}
	state, err := term.GetState(int(f.Fd()))
	if err != nil {
		return func() {} // it is no terminal
	}
	return func() { _ = term.Restore(int(f.Fd()), state) }
}

// passOn passes signals on to the program inside until its connection ends, and ends the
// connection of a program that goes on.
func passOn(ctx context.Context, p *vm.Process, connection *os.Process, asked <-chan os.Signal, ended <-chan struct{}) {
	var late <-chan time.Time
	for {
		select {
		case <-ended:
			return
		case s := <-asked:
			if err := p.Signal(ctx, signalNames[s]); err != nil {
				_ = connection.Signal(s)
			}
			if s != os.Interrupt { // which programs may go on after
				late = time.After(endPatience)
			}
		case <-late:
			_ = connection.Kill()
		}
	}
}

// exitCode returns the exit code of a program, as shells do that of one which a signal
// ended.
func exitCode(s *os.ProcessState) int {
	if status, ok := s.Sys().(interface {
		Signaled() bool
		Signal() syscall.Signal
	}); ok && status.Signaled() {
		return signalled + int(status.Signal())
	}
	return s.ExitCode()
}
