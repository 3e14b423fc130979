// Package mcpcmd has the verbs of the Model Context Protocol: the server that clients start,
// and those that write and remove it in the configuration of clients.
package mcpcmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/dirsandbox"
	"github.com/atoll-run/atoll/internal/cli/egresscmd"
	"github.com/atoll-run/atoll/internal/cli/sandboxcmd"
	"github.com/atoll-run/atoll/internal/mcp"
)

// env is the command line at work, with the methods of this package.
type env struct{ *console.Env }

// NewMCPCommand returns the command `atoll mcp`.
func NewMCPCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o console.SubjectFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Give an MCP client, such as an editor or an agent, a sandbox to work in",
		Long: `Give an MCP client, such as an editor or an agent, a sandbox to work in: a server of the Model Context
Protocol on standard input and output, which the client starts (atoll mcp install writes its configuration).

Its tools run commands and reach files inside the sandbox, with the policy of Atoll's own tools, and show
what applies. Approving changes, undoing them and widening what the sandbox reaches are no tools: a person
decides. In a git checkout, with a configuration that says nothing about sandboxes, the sandbox is the
one of the checkout, as with atoll run.

The server ends when its client closes its input or ends, and ends what it ran. Standard output carries
only the protocol.`,
		Example: `  atoll mcp install claude
  atoll mcp --agent work
  atoll mcp wrap -- python3 server.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return console.UnknownVerb(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(cmd); err != nil {
				return err
			}
			return e.serve(cmd.Context(), &o)
		},
	}
	o.Add(cmd)
	cmd.AddCommand(newInstallCommand(e), newUninstallCommand(e), sandboxcmd.NewWrapCommand(c))
	return cmd
}

// serve serves the client that started this program.
func (e *env) serve(ctx context.Context, o *console.SubjectFlags) error {
	ctx, stop := console.WithParent(ctx)
	defer stop()
	out, err := e.takeOutput()
	if err != nil {
		return err
	}
	a, err := e.Open(ctx)
	if err != nil {
		return err
	}
	options, err := e.options(ctx, a, o)
	if err != nil {
		return err
	}
	session, err := mcp.Open(ctx, *options)
	if err != nil {
		return console.WithCode(console.ExitUsage, err)
	}
	err = session.Serve(ctx, closable(e.In), out)
	if errors.Is(context.Cause(ctx), console.ErrClientGone) {
		return nil
	}
	return err
}

// options say whose sandbox the client gets: the one of the flags, or of the checkout, or
// of the default agent.
func (e *env) options(ctx context.Context, a *app.App, o *console.SubjectFlags) (*mcp.Options, error) {
	allowDestroy, keepRunning := a.Config.MCP()
	options := &mcp.Options{
		Agents: a.Agents, Models: a.Models, Sync: a.Sync, Subject: o.Who(),
		Changes:      api.SyncSubject{Agent: o.Agent, Session: o.Session, Account: o.Account, Scope: o.Scope},
		AllowDestroy: allowDestroy, KeepRunning: keepRunning,
		Propose: func(ctx context.Context) (string, error) { return egresscmd.Proposals(ctx, a.Settings) },
	}
	d := dirsandbox.Default(e.Env, a)
	if d == nil || *o != (console.SubjectFlags{}) {
		return options, nil
	}
	how, err := dirsandbox.CommandOptions(e.Env, a, d, "")
	if err != nil {
		return nil, err
	}
	if d, err = dirsandbox.Record(ctx, e.Env, a, d, how.Image); err != nil {
		return nil, err
	}
	options.Subject, options.Changes = a.DirectorySubject(d, how), api.SyncSubject{Directory: d.Path}
	return options, nil
}
