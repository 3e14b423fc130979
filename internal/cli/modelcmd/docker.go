package modelcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/dockercli"
	"github.com/atoll-run/atoll/internal/dockercli/containers"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// NewDockerCommand returns the command `atoll docker`.
func NewDockerCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	return &cobra.Command{
		Use:   "docker COMMAND…",
		Short: "The docker command line, over Atoll's sandboxes",
		Long: `The docker command line, over Atoll's sandboxes: for programs that drive
docker. It is also there as the program atoll-docker, and when atoll is called
by the name docker. What it speaks and refuses is in docs/docker.md.`,
		Example: `  atoll docker run --rm debian:bookworm-slim uname -a
  atoll docker ps -a`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := runDocker(cmd.Context(), e, args); code != 0 {
				return console.WithCode(code, nil)
			}
			return nil
		},
	}
}

// Docker runs one docker command line and returns the exit code.
func Docker(ctx context.Context, args []string, t *console.Terminal) int {
	e := &env{console.NewEnv(t)}
	defer e.Close()
	return runDocker(ctx, e, args)
}

func runDocker(ctx context.Context, e *env, args []string) int {
	terminal := &dockercli.Terminal{In: e.In, Out: e.Out.Writer, Err: e.Err, Getenv: e.Getenv}
	settings, err := provide.Load(provide.LoadOptions{Getenv: e.Getenv, OwnConfig: true})
	if err != nil {
		e.Report(err)
		return console.ExitRunFailure
	}
	for _, n := range settings.Notices {
		e.Notice(n)
	}
	open := func(ctx context.Context) (*provide.Installation, error) {
		opened, err := app.OpenWith(ctx, settings, e.Logger())
		if err != nil {
			return nil, err
		}
		e.Opened = opened
		return opened.Installation, nil
	}
	all := containers.New(settings, open)
	if len(args) > 0 && args[0] == containers.KeepVerb {
		return keepPorts(ctx, e, all, open, args)
	}
	return dockercli.Main(ctx, args, terminal, all)
}

// keepPorts serves the ports of one container, for the process that started it.
func keepPorts(ctx context.Context, e *env, all *containers.Sandboxes, open func(context.Context) (*provide.Installation, error), args []string) int {
	err := containers.CheckKeep(args)
	if err == nil {
		_, err = open(ctx)
	}
	if err == nil {
		err = containers.Keep(ctx, all, e.Opened.Egress, args[1])
	}
	if err != nil {
		e.Report(err)
		return console.ExitRunFailure
	}
	return 0
}
