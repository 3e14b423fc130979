package sshcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		Exec: func(ctx context.Context, command *machine.Command) (*machine.Result, error) {
			return e.exec(ctx, a, box, how, command)
		},
		Signal: func(ctx context.Context, id, signal string) error { return box.Machine.Signal(ctx, id, signal, false) },
		Dial:   func(ctx context.Context, port int) (net.Conn, error) { return box.Machine.Dial(ctx, "tcp", port) },
	}
	return server.Serve(ctx, stdio(e.In, e.Out.Writer))
}

// exec records a command of the client and runs it with the environment of the sandbox.
func (e *env) exec(ctx context.Context, a *app.App, box *provide.ReadySandbox, how *sandboxcmd.Started, command *machine.Command) (*machine.Result, error) {
	if err := a.Models.AuditCommand(box, "", command.Argv); err != nil {
		return nil, err
	}
	full, err := sandboxcmd.CommandOf(e.Env, box, &sandboxcmd.Started{Env: command.Env, Grant: how.Grant, GrantEnv: how.GrantEnv}, command.Argv)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", machine.ErrInvalid, err)
	}
	command.Env, command.Dir, command.Grant = full.Env, full.Dir, full.Grant
	return box.Exec(ctx, command)
}

// stdio is standard input and output as a connection that can be closed while it is read.
func stdio(in io.Reader, out io.Writer) net.Conn {
	ours, theirs := net.Pipe()
	go func() {
		_, _ = io.Copy(theirs, in) // until the client leaves
		_ = theirs.Close()
	}()
	go func() { _, _ = io.Copy(out, theirs) }()
	return ours
}
