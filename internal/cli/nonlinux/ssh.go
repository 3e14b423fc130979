package nonlinux

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/contexts"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sshserver/clientconfig"
	"github.com/atoll-run/atoll/internal/sshserver/remote"
)

// sshDir is where the keys of the client are, below the state directory.
const sshDir = "ssh"

func newSSHCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ssh SANDBOX [COMMAND…]", Short: "Open a sandbox of a gateway with ssh", Args: cobra.MinimumNArgs(1),
		Long: `Open a sandbox of a gateway with ssh: a shell, or COMMAND. It is a sandbox that a program
made, by the name or id that ps shows. ssh runs atoll, which carries the bytes; nothing
listens. Ports cannot be forwarded.`,
		Example: "  atoll ssh api-42 make test",
		RunE:    func(cmd *cobra.Command, args []string) error { return e.openSSH(cmd.Context(), args) },
	}
	cmd.Flags().SetInterspersed(false)
	cmd.AddCommand(&cobra.Command{
		Use: "proxy HOST", Short: "Serve one SSH connection on standard input and output", Args: cobra.ExactArgs(1), Hidden: true,
		Example: "  atoll ssh proxy api-42.atoll",
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.proxySSH(cmd.Context(), strings.TrimSuffix(args[0], clientconfig.Domain))
		},
	})
	return cmd
}

// openSSH runs the client for a sandbox; the exit code is the client's.
func (e *env) openSSH(ctx context.Context, args []string) error {
	to, err := e.target()
	if err != nil {
		return err
	}
	state, err := e.stateDir()
	if err != nil {
		return err
	}
	name := cmp.Or(e.gateway, to.URL)
	if e.gateway == "" && e.Getenv(contexts.URLVariable) == "" { // the current context, whose token the proxy needs
		all, err := contexts.Load(state)
		if err != nil {
			return err
		}
		name = all.Current
	}
	cmd, err := remote.Command(ctx, filepath.Join(state, sshDir), name, args[0], args[1:])
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.In, e.Out, e.Err
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exitError(exit.ExitCode())
	}
	return err
}

// proxySSH serves the client at standard input and output.
func (e *env) proxySSH(ctx context.Context, name string) error {
	state, err := e.stateDir()
	if err != nil {
		return err
	}
	files, err := clientconfig.Load(filepath.Join(state, sshDir))
	if err != nil {
		return errhint.With(err, "run `atoll ssh SANDBOX` first")
	}
	c, err := e.open()
	if err != nil {
		return err
	}
	defer c.Close()
	box := &remote.Sandbox{Client: c, ID: name, Log: slog.New(slog.DiscardHandler)}
	return box.Serve(ctx, files, remote.Stdio(e.In, e.Out))
}
