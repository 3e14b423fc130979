package sshcmd

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sshserver/clientconfig"
	"github.com/atoll-run/atoll/internal/sshserver/remote"
)

// openElsewhere runs the client for a sandbox of a gateway elsewhere.
func (e *env) openElsewhere(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return console.WithCode(console.ExitUsage, errhint.With(errors.New("no sandbox is named"), "`atoll ps --gateway "+e.Gateway+"` lists them"))
	}
	state, err := e.StateDir()
	if err != nil {
		return err
	}
	cmd, err := remote.Command(ctx, filepath.Join(state, "ssh"), e.Gateway, args[0], args[1:])
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.In, e.Out.Writer, e.Err
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return console.WithCode(exit.ExitCode(), nil)
	}
	return err
}

// proxyElsewhere serves the client at standard input and output.
func (e *env) proxyElsewhere(ctx context.Context, name string) error {
	state, err := e.StateDir()
	if err != nil {
		return err
	}
	files, err := clientconfig.Load(filepath.Join(state, "ssh"))
	if err != nil {
		return err
	}
	g, err := backend.RunningGateway(ctx, e.Env)
	if err != nil {
		return err
	}
	box := &remote.Sandbox{Client: g.Client, ID: name, Log: e.Logger()}
	return box.Serve(ctx, files, remote.Stdio(e.In, e.Out.Writer))
}
