// Package cli is the command line: one file a verb. A verb reads its flags,
// asks package app for what it needs, and prints; decisions live elsewhere.
//
// What goes where: data to standard output, in tables for people and as JSON
// with --json; progress, notices, errors and hints to standard error.
package cli

import (
	"context"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/agentcmd"
	"github.com/atoll-run/atoll/internal/cli/browsercmd"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/contextcmd"
	"github.com/atoll-run/atoll/internal/cli/egresscmd"
	"github.com/atoll-run/atoll/internal/cli/mcpcmd"
	"github.com/atoll-run/atoll/internal/cli/modelcmd"
	"github.com/atoll-run/atoll/internal/cli/poolcmd"
	"github.com/atoll-run/atoll/internal/cli/runcmd"
	"github.com/atoll-run/atoll/internal/cli/sandboxcmd"
	"github.com/atoll-run/atoll/internal/cli/secretscmd"
	"github.com/atoll-run/atoll/internal/cli/setupcmd"
	"github.com/atoll-run/atoll/internal/cli/sshcmd"
	"github.com/atoll-run/atoll/internal/cli/synccmd"
	"github.com/atoll-run/atoll/internal/cli/vmcmd"
)

// The groups in which help shows the verbs.
const (
	groupAgents = "agents"
	groupWork   = "work"
	groupMoney  = "money"
	groupSetup  = "setup"
	groupOther  = "other"
)

var groups = []*cobra.Group{
	{ID: groupAgents, Title: "In this directory:"},
	{ID: groupWork, Title: "Sandboxes:"},
	{ID: groupMoney, Title: "Models and money:"},
	{ID: groupSetup, Title: "Setting up:"},
	{ID: groupOther, Title: "Other commands:"},
}

// verb is a word of the command line, and what makes its command.
type verb struct {
	name string
	make func(*console.Env) *cobra.Command
}

// verbs are all verbs by their groups.
var verbs = map[string][]verb{
	groupAgents: agentVerbs(),
	groupWork: {{"agent", runcmd.NewAgentCommand}, {"demo", runcmd.NewDemoCommand}, {"run", sandboxcmd.NewRunCommand}, {"gateway", modelcmd.NewGatewayCommand}, {"dashboard", modelcmd.NewDashboardCommand}, {"ps", sandboxcmd.NewTopPsCommand},
		{"create", sandboxcmd.NewCreateCommand}, {"exec", sandboxcmd.NewTopExecCommand}, {"cp", sandboxcmd.NewCpCommand}, {"extend", sandboxcmd.NewExtendCommand}, {"snapshot", sandboxcmd.NewSnapshotCommand}, {"logs", sandboxcmd.NewTopLogsCommand}, {"forward", sandboxcmd.NewForwardCommand}, {"browser", browsercmd.NewBrowserCommand}, {"ssh", sshcmd.NewSSHCommand}, {"egress", newEgressCommand}, {"stop", sandboxcmd.NewStopCommand}, {"rm", sandboxcmd.NewRmCommand}, {"sandbox", sandboxcmd.NewSandboxCommand}, {"pool", poolcmd.NewPoolCommand},
		{"tool", sandboxcmd.NewToolCommand}, {"mcp", mcpcmd.NewMCPCommand}, {"relay", runcmd.NewRelayCommand}, {"approvals", runcmd.NewApprovalsCommand}, {"sync", synccmd.NewSyncCommand}, {"docker", modelcmd.NewDockerCommand}},
	groupMoney: {{"proxy", modelcmd.NewProxyCommand}, {"runs", runcmd.NewRunsCommand}, {"billing", modelcmd.NewBillingCommand}, {"audit", modelcmd.NewAuditCommand},
		{"token", modelcmd.NewTokenCommand}, {"models", modelcmd.NewModelsCommand}},
	groupSetup: {{"config", setupcmd.NewConfigCommand}, {"doctor", setupcmd.NewDoctorCommand}, {"images", setupcmd.NewImagesCommand}, {"secrets", secretscmd.NewSecretsCommand}, {"volumes", sandboxcmd.NewVolumesCommand}, {"context", newContextCommand}, {"vm", newVMCommand}},
	groupOther: {{"version", console.NewVersionCommand}},
}

// newEgressCommand returns the command `atoll egress`.
func newEgressCommand(e *console.Env) *cobra.Command {
	return egresscmd.NewEgressCommand(e, sandboxcmd.NewLearnCommand(e))
}

// newContextCommand returns the command `atoll context`.
func newContextCommand(e *console.Env) *cobra.Command {
	return contextcmd.New(&contextcmd.Host{In: e.In, Out: e.Out, StateDir: e.StateDir})
}

// newVMCommand returns the command `atoll vm`.
func newVMCommand(e *console.Env) *cobra.Command {
	home, _ := os.UserHomeDir() // without one, a path that begins with ~ is refused
	return vmcmd.New(&vmcmd.Host{
		In: e.In, Out: e.Out, Err: e.Err, Getenv: e.Getenv, Home: home, System: runtime.GOOS, Arch: runtime.GOARCH,
		Config: func() string { return e.ConfigPath }, Exit: func(code int) error { return console.WithCode(code, nil) },
	})
}

// agentVerbs are the verbs of the built-in presets, which are read when one is made.
func agentVerbs() (list []verb) {
	for _, id := range []string{"claude", "codex", "gemini", "opencode", "shell"} {
		list = append(list, verb{id, agentcmd.NewCommand(id)})
	}
	return append(list, verb{"openclaw", newOpenClawCommand})
}

// newOpenClawCommand is the verb of OpenClaw, with those that set up its gateways.
func newOpenClawCommand(e *console.Env) *cobra.Command {
	cmd := agentcmd.NewCommand("openclaw")(e)
	cmd.Args = cobra.ArbitraryArgs // a task is no verb
	cmd.AddCommand(modelcmd.NewOpenClawConfigCommand(e), modelcmd.NewOpenClawEgressCommand(e))
	return cmd
}

// Main runs one command line and returns the exit code.
func Main(ctx context.Context, args []string, t *console.Terminal) int {
	e := console.NewEnv(t)
	root := newRootCommand(e, chosen(args))
	if isCompletion(args) {
		addCompletion(e, root)
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	e.Close()
	return e.Finish(ctx, err)
}

// chosen is the verb that a command line begins with; "" if it does not begin with
// one, as when help is asked for.
func chosen(args []string) string {
	for _, members := range verbs {
		if len(args) > 0 && slices.ContainsFunc(members, func(v verb) bool { return v.name == args[0] }) {
			return args[0]
		}
	}
	return ""
}

// newRootCommand is the command line with all verbs, or with only one: to make
// the others takes longer than many commands do.
func newRootCommand(e *console.Env, only string) *cobra.Command {
	root := &cobra.Command{
		Use:   "atoll",
		Short: "Run AI agents, and every tool they call, inside hardened sandboxes",
		Long: `Atoll runs AI agents, and every tool they call, inside hardened sandboxes.

Every sandbox is a machine without a network that has exactly one wire to the
host. Settings come from one file; an openclaw.json works as it is.`,
		Example: `  atoll run -- python3 -c 'print(6*7)'     # one command in a sandbox
  atoll sandbox explain                    # what applies here, and why
  atoll sandbox verify                     # whether every wall holds, tried from inside
  atoll ps                                 # what is there
  atoll doctor                             # what this machine can enforce`,
		Version:       console.VersionText(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(e.Out)
	root.SetErr(e.Err)
	root.SetIn(e.In)
	root.SetFlagErrorFunc(console.Usage)
	root.SetVersionTemplate("{{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&e.ConfigPath, "config", "", "configuration `file` (default: a trusted ./atoll.json5, else the first of the state directory's and openclaw.json)")
	flags.BoolVarP(&e.Verbose, "verbose", "v", false, "say what is done on standard error")
	addVerbs(root, e, only)
	return root
}

func addVerbs(root *cobra.Command, e *console.Env, only string) {
	root.AddGroup(groups...)
	for group, members := range verbs {
		for _, verb := range members {
			if only != "" && only != verb.name {
				continue
			}
			cmd := verb.make(e)
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommand(newHelpCommand())
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	root.InitDefaultCompletionCmd()
	if only == "" {
		agentcmd.AddOwn(e, root, groupAgents)
	}
	sandboxcmd.ListIsLs(root)
	rejectStrayArguments(root)
}

// newHelpCommand is help that fails for a word that is no verb.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND…]",
		Short: "Explain a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return console.UnknownVerb(target, args[len(args)-len(rest)])
			}
			return target.Help()
		},
	}
}

// rejectStrayArguments makes a word that is no verb an error at every level;
// cobra would print help and call that a success.
func rejectStrayArguments(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		rejectStrayArguments(child)
	}
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return console.UnknownVerb(cmd, args[0])
		}
	}
}
