package sandboxcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
)

type createOptions struct {
	image, template, memory string
	git, ref, copyFrom      string
	cpus                    float64
	env, metadata, egress   []string
	timeout                 time.Duration
	onDeadline              string
	asJSON                  bool
}

// NewCreateCommand returns the command `atoll create`.
func NewCreateCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o createOptions
	cmd := &cobra.Command{
		Use:   "create [flags]",
		Short: "Make a sandbox of its own and print its name",
		Long: `Make a sandbox that belongs to no session, as programs do through the gateway's
API, and print its name. Its workspace begins empty, or with the files of a
template, a directory or a git repository. At its deadline it is removed, or
stopped with --on-deadline stop.

It needs a running gateway, which keeps the deadline. Commands run in it with
atoll exec, and files are copied with atoll sandbox cp.`,
		Example: `  box=$(atoll create --timeout 1h)
  atoll exec $box python3 -c 'print(6*7)'
  atoll create --template base --memory 512m
  atoll create --copy . --egress preset:npm`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runCreate(cmd.Context(), e, &o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.image, "image", "", "image to make the sandbox from (default: as configured)")
	flags.StringVar(&o.template, "template", "", "begin with the files of this `template`")
	flags.StringVar(&o.copyFrom, "copy", "", "begin with a copy of this `directory`; links are left out")
	flags.StringVar(&o.git, "git", "", "begin with a clone of the repository at this `URL`, made inside")
	flags.StringVar(&o.ref, "ref", "", "branch or tag to clone (default: the repository's own)")
	flags.StringArrayVar(&o.egress, "egress", nil, "let its commands reach a `NAME`, NAME:PORT, *.NAME or preset:NAME, in place of what is configured (again for more)")
	console.SizeFlag(cmd, &o.memory, "memory", "memory limit, a `size` such as 512m (default: as configured)")
	flags.Float64Var(&o.cpus, "cpus", 0, "limit of processors, such as 0.5 (default: as configured)")
	flags.StringArrayVarP(&o.env, "env", "e", nil, "set `NAME=VALUE` for every command (again for more)")
	flags.StringArrayVar(&o.metadata, "metadata", nil, "note `NAME=VALUE` with it (again for more)")
	console.LifeFlag(cmd, &o.timeout, "timeout", defaultDeadline, "remove it, or stop it, after this `time`")
	flags.StringVar(&o.onDeadline, "on-deadline", "", "remove or stop it at its deadline (default: remove)")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// defaultDeadline is from the creation of a sandbox to its deadline.
const defaultDeadline = 5 * time.Minute

func runCreate(ctx context.Context, e *env, o *createOptions) error {
	q, err := o.request()
	if err != nil {
		return console.WithCode(console.ExitUsage, err)
	}
	g, err := e.needGateway(ctx)
	if err != nil {
		return err
	}
	done := e.Progress("preparing the sandbox")
	box, err := e.createFilled(ctx, g, q, o.copyFrom)
	done()
	if err != nil {
		return backend.ProblemError(err)
	}
	if o.asJSON {
		return e.PrintJSON(box)
	}
	_, err = fmt.Fprintln(e.Out, box.ContainerName)
	return err
}

// createFilled makes a sandbox and copies a directory into it. Without the files there is
// no sandbox.
func (e *env) createFilled(ctx context.Context, g *backend.Gateway, q *api.CreateSandbox, from string) (*api.Sandbox, error) {
	box, err := g.Client.CreateSandbox(ctx, q)
	if err != nil || from == "" {
		return box, err
	}
	totals, err := g.Client.CopyIn(ctx, box.ID, from, ".")
	if err != nil {
		_, removeErr := g.Client.RemoveSandbox(context.WithoutCancel(ctx), box.ID)
		return nil, errors.Join(err, removeErr)
	}
	if totals.LeftOut > 0 {
		e.Notice(fmt.Sprintf("left out: %d links", totals.LeftOut))
	}
	return box, nil
}

// request returns what the flags ask for.
func (o *createOptions) request() (*api.CreateSandbox, error) {
	variables, err := parseEnv(o.env)
	if err != nil {
		return nil, err
	}
	metadata, err := parseEnv(o.metadata)
	if err != nil {
		return nil, errhint.With(errors.New("--metadata: not NAME=VALUE"), "write for example --metadata user=ann")
	}
	if _, err := os.Stat(o.copyFrom); o.copyFrom != "" && err != nil {
		return nil, errhint.With(fmt.Errorf("--copy %s: it does not exist", o.copyFrom), "name a file or a directory of this machine")
	}
	q := &api.CreateSandbox{Image: o.image, Template: o.template, Env: variables, Metadata: metadata, TimeoutSeconds: int64(o.timeout.Seconds()), OnDeadline: o.onDeadline}
	if o.git != "" || o.ref != "" {
		q.Workspace = &api.SandboxWorkspace{Git: o.git, Ref: o.ref}
	}
	if len(o.egress) > 0 {
		q.Egress = &api.SandboxEgress{Allow: o.egress}
	}
	if o.memory != "" || o.cpus != 0 {
		bytes, err := config.Size{Text: o.memory}.Bytes()
		if o.memory != "" && err != nil {
			return nil, fmt.Errorf("--memory: %w", err)
		}
		q.Limits = &api.SandboxLimits{MemoryBytes: bytes, CPUs: o.cpus}
	}
	return q, nil
}

// needGateway returns the running gateway.
func (e *env) needGateway(ctx context.Context) (*backend.Gateway, error) {
	g, err := backend.RunningGateway(ctx, e.Env)
	if err == nil && g == nil {
		err = errhint.With(errors.New("no gateway is running, which keeps such sandboxes and their deadlines"), "start one with `atoll gateway --background`, or `atoll gateway` for others too")
	}
	return g, err
}
