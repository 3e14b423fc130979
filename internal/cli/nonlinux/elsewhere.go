package nonlinux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/cli/contextcmd"
	"github.com/atoll-run/atoll/internal/cli/vmcmd"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/contexts"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/terminal"
	"github.com/atoll-run/atoll/internal/version"
)

const (
	exitFailure = 1
	exitUsage   = 2
)

// Terminal is what the command line reads and writes.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Home     string
	System   string // GOOS of the machine
}

// env is what verbs share.
type env struct {
	*Terminal
	gateway string // URL, or the name of a context
}

// WithSignals returns a context that is cancelled by SIGINT, SIGTERM or SIGHUP.
func WithSignals(parent context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// Main runs one command line and returns the exit code.
func Main(ctx context.Context, args []string, t *Terminal) int {
	root := newRootCommand(&env{Terminal: t})
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	text := terminal.Harmless(t.Err)
	fmt.Fprintf(text, "error: %v\n", err)
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(text, "hint: %s\n", hint)
	}
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return exitFailure
}

// hintOf is what helps: our own words, or the gateway's.
func hintOf(err error) string {
	problem, ok := errors.AsType[*api.Problem](err)
	switch {
	case !ok:
		return errhint.Of(err)
	case problem.Hint == "" && problem.Status == http.StatusUnauthorized:
		return "set " + contexts.TokenVariable + " to a token that `atoll token create` made on the gateway's machine"
	}
	return problem.Hint
}

var errUsage = errors.New("usage")

// wrong is an error of the command line itself.
func wrong(err error, hint string) error {
	return errhint.With(usageError{err}, hint)
}

type usageError struct{ error }

// Unwrap returns the error that it is.
func (e usageError) Unwrap() error { return e.error }

func (usageError) Is(target error) bool { return target == errUsage }

func newRootCommand(e *env) *cobra.Command {
	info := version.Current()
	root := &cobra.Command{
		Use:   "atoll",
		Short: "Check configurations, and work with a gateway on a Linux machine",
		Long: `Check configurations, and work with a gateway on a Linux machine.

Sandboxes need Linux. On this system a gateway makes them: name it with --gateway
or $` + contexts.URLVariable + `, and its token with $` + contexts.TokenVariable + `; or keep both with
"atoll context add".

On a Mac the gateway can be in a virtual machine: "atoll vm init", then "atoll vm up".
With it "atoll claude", codex, gemini, opencode, openclaw, shell, run and agent work here.`,
		Example: `  atoll runs start --gateway https://atoll.example.org -m "Fix the failing test"
  atoll config check atoll.json5`,
		Version:       fmt.Sprintf("atoll %s (%s, %s)", info.Version, info.Platform, info.Go),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return wrong(fmt.Errorf("atoll has no command %q", args[0]), "see `atoll --help`")
		},
	}
	root.SetOut(e.Out)
	root.SetErr(e.Err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return wrong(err, "see `"+cmd.CommandPath()+" --help`") })
	root.PersistentFlags().StringVar(&e.gateway, "gateway", "", "`URL` of a gateway on a Linux machine, or the name of a context")
	root.AddCommand(newVersionCommand(e), newConfigCommand(e), newDoctorCommand(e), newRunsCommand(e), newPsCommand(e),
		newExecCommand(e), newSSHCommand(e), newSyncCommand(e), newMCPCommand(e), newDashboardCommand(e), contextcmd.New(&contextcmd.Host{In: e.In, Out: e.Out, StateDir: e.stateDir}), newVMCommand(e))
	for _, name := range LinuxOnly() {
		root.AddCommand(newLinuxCommand(e, name))
	}
	return root
}

// LinuxOnly are the verbs that need a sandbox, or the files of a gateway, on this
// machine.
func LinuxOnly() []string {
	return []string{"agent", "approvals", "audit", "billing", "browser", "claude", "codex", "cp", "create", "demo", "docker", "egress", "extend", "forward", "gateway", "gemini", "images", "logs", "models", "openclaw", "opencode", "pool", "proxy", "relay", "rm", "run", "sandbox", "secrets", "shell", "snapshot", "stop", "token", "tool", "volumes"}
}

// newLinuxCommand is a verb that needs Linux: it works in the virtual machine, if the
// configuration has one, or says so.
func newLinuxCommand(e *env, name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: "Needs Linux", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if host := e.vmHost(); vmcmd.Forwards(host, name) {
				return e.forward(cmd.Context(), host, append([]string{name}, args...))
			}
			hint := ""
			if vmcmd.Forwarded(name) && e.System == "darwin" {
				hint = "it works in a virtual machine: make one with `atoll vm init` and `atoll vm up`"
			}
			return errhint.With(fmt.Errorf("atoll %s needs Linux, and this is %s; on this machine work with a gateway: atoll runs start --gateway URL", name, e.System), hint)
		},
	}
}

// forward has a verb work in the virtual machine, which is not started for a help text.
func (e *env) forward(ctx context.Context, host *vmcmd.Host, args []string) error {
	if len(args) == 2 && (args[1] == "--help" || args[1] == "-h") {
		if m, err := vmcmd.Open(host); err != nil || !m.Runs(ctx) {
			_, err = fmt.Fprintf(e.Out, "atoll %s works in the virtual machine, in a directory of the project. When it runs (`atoll vm up`) this prints the flags.\n", args[0])
			return err
		}
	}
	return vmcmd.Forward(ctx, host, args)
}

// newVMCommand is the verb vm; its configuration file is the person's own.
func newVMCommand(e *env) *cobra.Command {
	return vmcmd.New(e.vmHost())
}

func (e *env) vmHost() *vmcmd.Host {
	return &vmcmd.Host{
		In: e.In, Out: e.Out, Err: e.Err, Getenv: e.Getenv, Home: e.Home, System: e.System, Arch: runtime.GOARCH,
		Config: func() string { return "" }, Exit: func(code int) error { return exitError(code) },
	}
}

func newVersionCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which build this is", Example: "  atoll version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(e.Out, cmd.Root().Version)
			return err
		},
	}
}

// stateDir is where contexts are kept.
func (e *env) stateDir() (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	paths, err := config.Environment{Getenv: e.Getenv, Home: e.Home, Cwd: cwd}.Paths()
	return paths.AtollState, err
}

// target returns the gateway that is meant.
func (e *env) target() (contexts.Context, error) {
	state, err := e.stateDir()
	if err != nil {
		return contexts.Context{}, err
	}
	all, err := contexts.Load(state)
	if err != nil {
		return contexts.Context{}, err
	}
	to, err := all.Resolve(e.gateway, e.Getenv)
	if err != nil {
		return to, usageError{err}
	}
	return to, nil
}

// open returns a client of the gateway that is meant.
func (e *env) open() (*client.Client, error) {
	to, err := e.target()
	if err != nil {
		return nil, err
	}
	c, err := client.New(client.Options{URL: to.URL, Token: to.Token})
	if err != nil {
		return nil, wrong(err, "give --gateway URL, such as https://atoll.example.org")
	}
	return c, nil
}
