package sshcmd

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/sandboxcmd"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sshserver/clientconfig"
)

type env struct{ *console.Env }

// NewSSHCommand returns the command `atoll ssh`.
func NewSSHCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{
		Use:   "ssh [SANDBOX [COMMAND…]]",
		Short: "Open a sandbox with ssh, scp, sftp, rsync and editors",
		Long: `Open a sandbox with ssh: a shell, or COMMAND. SANDBOX is a name as ps shows it,
the session, or the beginning of either; without it the sandbox is that of this
directory. The sandbox has no SSH server and no network: ssh runs atoll, which
carries the bytes. Nothing listens.

After atoll ssh config every program that uses OpenSSH reaches SANDBOX.atoll: scp,
sftp, rsync, git, VS Code. Ports of the sandbox can be forwarded (-L, -D), those of
this machine cannot (-R): show one with --service or sandbox.egress.services.

With --gateway it is a sandbox that a program made at a gateway elsewhere, without
ports.`,
		Example: `  atoll ssh
  atoll ssh agent-main git log --oneline
  atoll ssh --gateway work api-42 make test
  atoll ssh config`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return e.open(cmd.Context(), args) },
	}
	cmd.PersistentFlags().StringVar(&e.Gateway, "gateway", "", "work with a gateway elsewhere: its `URL`, or the name of a context")
	cmd.Flags().SetInterspersed(false)
	cmd.AddCommand(newConfigCommand(e), newProxyCommand(e))
	return cmd
}

// open runs the client for a sandbox; the exit code is the client's.
func (e *env) open(ctx context.Context, args []string) error {
	if e.Gateway != "" {
		return e.openElsewhere(ctx, args)
	}
	client, err := exec.LookPath("ssh")
	if err != nil {
		return errhint.With(errors.New("ssh is not installed"), "install the package openssh-client, or use `atoll exec -it SANDBOX sh`")
	}
	files, err := e.makeFiles()
	if err != nil {
		return err
	}
	name, command, err := e.target(ctx, args)
	if err != nil {
		return err
	}
	e.Close() // the client starts another process that opens the installation
	words := append([]string{"-F", files.ConfigPath(), "--", name + clientconfig.Domain}, command...)
	cmd := clientconfig.Client(ctx, client, words...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.In, e.Out.Writer, e.Err
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return console.WithCode(exit.ExitCode(), nil)
	}
	return err
}

// target returns the name of the sandbox and the command.
func (e *env) target(ctx context.Context, args []string) (name string, command []string, err error) {
	if len(args) > 0 {
		name, err = sandboxcmd.NameOf(ctx, e.Env, args[0])
		return name, args[1:], err
	}
	name, err = sandboxcmd.NameHere(ctx, e.Env)
	if errors.Is(err, sandbox.ErrNotRunning) || errors.Is(err, sandbox.ErrNotFound) {
		err = errhint.With(errors.New("no sandbox of this directory runs"), "make one with `atoll shell`, or name one that `atoll ps` shows")
	}
	return name, nil, err
}

// makeFiles makes the keys and the configuration of the client, where they are missing.
func (e *env) makeFiles() (*clientconfig.Files, error) {
	settings, err := e.Load()
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return clientconfig.Make(filepath.Join(settings.Paths.AtollState, "ssh"), program)
}
