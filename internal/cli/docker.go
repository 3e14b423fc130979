package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/dockercli"
)

func newDockerCommand(e *env) *cobra.Command {
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
				return withCode(code, nil)
			}
			return nil
		},
	}
}

// Docker runs one docker command line and returns the exit code.
func Docker(ctx context.Context, args []string, t *Terminal) int {
	e := newEnv(t)
	defer e.close()
	return runDocker(ctx, e, args)
}

func runDocker(ctx context.Context, e *env, args []string) int {
	terminal := &dockercli.Terminal{In: e.In, Out: e.out.Writer, Err: e.Err, Getenv: e.Getenv}
	settings, err := app.Load(app.Options{Getenv: e.Getenv, OwnConfig: true})
	if err != nil {
		e.report(err)
		return exitRunFailure
	}
	for _, n := range settings.Notices {
		e.notice(n)
	}
	open := func(ctx context.Context) (_ *app.App, err error) {
		e.opened, err = settings.Open(ctx, e.logger())
		return e.opened, err
	}
	return dockercli.Main(ctx, args, terminal, app.NewBoxes(settings, open))
}
