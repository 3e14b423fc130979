package sshcmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/egresscmd"
	"github.com/atoll-run/atoll/internal/cli/sandboxcmd"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sshserver"
	"github.com/atoll-run/atoll/internal/sshserver/clientconfig"
	"github.com/atoll-run/atoll/internal/sshserver/remote"
)

func newProxyCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "proxy HOST",
		Short:   "Serve one SSH connection on standard input and output",
		Long:    "Serve one SSH connection to the sandbox HOST, which may end in .atoll, on standard\ninput and output. It is what atoll ssh config writes as the ProxyCommand.",
		Example: "  atoll ssh proxy agent-main.atoll",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return console.Usage(cmd, errors.New("one host is needed"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.proxy(cmd.Context(), strings.TrimSuffix(args[0], clientconfig.Domain))
		},
	}
}

// proxy serves the client at standard input and output.
func (e *env) proxy(ctx context.Context, name string) error {
	if e.Gateway != "" {
		return e.proxyElsewhere(ctx, name)
	}
	a, err := e.Open(ctx)
	if err != nil {
		return err
	}
	files, err := clientconfig.Load(filepath.Join(a.Paths.AtollState, "ssh"))
	if errors.Is(err, clientconfig.ErrNone) {
		err = errhint.With(err, "run `atoll ssh config`")
	}
	if err != nil {
		return err
	}
	box, err := sandboxcmd.Named(ctx, e.Env, name)
	if err != nil {
		return err
	}
	defer box.Release()
	var flags egresscmd.Flags
	egress, err := flags.Open(ctx, a, box, "", nil)
	if err != nil {
		return err
	}
	how := &sandboxcmd.Started{}
	if egress != nil {
		defer func() { _ = egress.Close() }() // what it refused was told to the programs
		how.Grant, how.GrantEnv = egress.GrantID(), egress.Environment()
	}
	return e.serve(ctx, a, box, files, how)
}

func (e *env) serve(ctx context.Context, a *app.App, box *provide.ReadySandbox, files *clientconfig.Files, how *sandboxcmd.Started) error {
	server := &sshserver.Server{
		HostKey: files.Server, Client: files.Client, Log: e.Logger(), SFTP: []string{provide.GuestProgram, "sftp"},
		Exec: func(ctx context.Context, command *sshserver.Command) (*sshserver.Result, error) {
			return e.exec(ctx, a, box, how, command)
		},
		Signal: func(ctx context.Context, id, signal string) error { return box.Machine.Signal(ctx, id, signal, false) },
		Dial:   func(ctx context.Context, port int) (net.Conn, error) { return dial(ctx, box, port) },
	}
	return server.Serve(ctx, remote.Stdio(e.In, e.Out.Writer))
}

// exec records a command of the client and runs it with the environment of the sandbox.
func (e *env) exec(ctx context.Context, a *app.App, box *provide.ReadySandbox, how *sandboxcmd.Started, asked *sshserver.Command) (*sshserver.Result, error) {
	if err := a.Models.AuditCommand(box, "", asked.Argv); err != nil {
		return nil, err
	}
	full, err := sandboxcmd.CommandOf(e.Env, box, &sandboxcmd.Started{Env: asked.Env, Grant: how.Grant, GrantEnv: how.GrantEnv}, asked.Argv)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", machine.ErrInvalid, err)
	}
	command := &machine.Command{
		ID: asked.ID, Argv: asked.Argv, Env: full.Env, Dir: full.Dir, Grant: full.Grant, Stdin: asked.Stdin, Stdout: asked.Stdout, Stderr: asked.Stderr,
	}
	if asked.TTY != nil {
		size := machine.Size(*asked.TTY)
		command.TTY, command.Resize = &size, resizes(ctx, asked.Resize)
	}
	result, err := box.Exec(ctx, command)
	if err != nil {
		return &sshserver.Result{ExitCode: machine.ExitStatus(err)}, err
	}
	return &sshserver.Result{ExitCode: result.ExitCode, Signal: result.Signal, Reason: reason(result)}, nil
}

// resizes passes sizes of a terminal on.
func resizes(ctx context.Context, from <-chan sshserver.Size) <-chan machine.Size {
	to := make(chan machine.Size)
	go func() {
		for {
			select {
			case size := <-from:
				select {
				case to <- machine.Size(size):
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}

// reason says why a command was ended; "" if a signal of another process did it.
func reason(r *machine.Result) string {
	switch {
	case r.OOM:
		return "the command ran out of memory"
	case r.QuotaExceeded != "":
		return r.QuotaExceeded.String()
	}
	return ""
}

// dial connects to a port of the sandbox.
func dial(ctx context.Context, box *provide.ReadySandbox, port int) (net.Conn, error) {
	conn, err := box.Machine.Dial(ctx, "tcp", port)
	if errors.Is(err, machine.ErrRefused) {
		err = sshserver.ErrRefused
	}
	return conn, err
}
