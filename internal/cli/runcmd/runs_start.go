package runcmd

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/runview"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/secret"
)

type startOptions struct {
	agentOptions // message, model, account and the like mean the same
	variant      string
	memory       string
}

func newRunsStartCommand(e *env) *cobra.Command {
	var o startOptions
	cmd := &cobra.Command{
		Use:   "start -m TEXT [flags]",
		Short: "Give a task to an agent in a sandbox of its own, and wait for it",
		Long: `Give a task to an agent that is whole in a sandbox of its own: its loop, its tools
and its state. The sandbox has no network; models are asked through the proxy,
which adds the key outside. When the agent has ended, its calls are reconciled
with the provider's books, the receipt is written and the sandbox is removed.

In a git checkout, with a configuration that says nothing about sandboxes, the agent
works on the checkout, by an overlay of its own: several runs do not disturb each
other. What it changed is kept until it is decided about (atoll sync review --run-id RUN).
--agent, --account, --branch, --work-item and --variant sandbox:openclaw mean a
workspace of its own.

Agents are sandbox:agent (Atoll's own), sandbox:openclaw and those of
runs.variants in the configuration. Asking again with the same --run-id gives what
became of the first.

Exit codes: 0 the agent answered, 1 it failed or its work could not be delivered,
2 usage or configuration, 3 denied, 4 no sandbox, 124 timeout, 137 out of memory.`,
		Example: `  atoll runs start -m "write a haiku about atolls to haiku.txt, and read it out"
  atoll runs start --variant sandbox:openclaw --model litellm/gemini-2.5-flash --message-file task.md
  atoll runs start -m "make the tests pass" && atoll sync status
  atoll runs start -m "fix the build" --work-item task.0022
  atoll runs start -m - --run-id build-42 --account acme --budget 0.50 --json < task.md`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRunsStart(cmd, e, &o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.variant, "variant", "sandbox:agent", "which `agent` works")
	flags.StringVarP(&o.message, "message", "m", "", "the task, or - for standard input")
	flags.StringVar(&o.messageFile, "message-file", "", "`file` with the task")
	flags.StringVar(&o.messages, "messages", "", "`file` with a conversation as JSON ([{role, text}…]), whose last message is the task")
	flags.StringVar(&o.agent, "agent", "", "agent whose settings, behaviour files and budgets apply (default: the default one)")
	flags.StringVar(&o.account, "account", "", "billing account")
	flags.StringVar(&o.model, "model", "", "`provider/name` of the model (default: the agent's)")
	flags.StringVar(&o.runID, "run-id", "", "`id` of the run (default: a new one)")
	console.TraceFlag(cmd, &o.trace)
	console.WorkFlag(cmd, &o.timeout, "timeout", 0, "end it after this `time`, at most a day (default: the variant's own)")
	console.SizeFlag(cmd, &o.memory, "memory", "memory limit, a `size` such as 256m, at most the variant's own")
	flags.Float64Var(&o.budget, "budget", 0, "most US `dollars` that it may spend on models")
	o.branchFlags.add(cmd)
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runRunsStart(cmd *cobra.Command, e *env, o *startOptions) error {
	task, err := o.task(cmd, e)
	if err != nil {
		return err
	}
	if err := secret.Harden(); err != nil {
		return err
	}
	ctx := cmd.Context()
	b, err := e.runsFor(ctx, o, task)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	view := &runView{View: runview.View{Env: e.Env}, env: e, quiet: o.asJSON}
	defer view.announce(ctx, task)()
	receipt, err := b.Start(ctx, task, backend.RunWatcher{Event: view.event, Scripted: func(notice func() string) { view.scripted = notice }})
	if receipt == nil {
		return asRunProblem(cmd, err)
	}
	return console.FirstOf(view.end(ctx, receipt), err)
}

func (o *startOptions) task(cmd *cobra.Command, e *env) (*execute.Task, error) {
	for _, name := range []string{"agent", "account"} {
		if err := console.CheckName(cmd, name); err != nil {
			return nil, err
		}
	}
	if err := console.CheckBudget(o.budget); err != nil {
		return nil, console.WithCode(console.ExitUsage, err)
	}
	memory, _ := config.Size{Text: o.memory}.Bytes() // the flag took only what is a size
	message, history, err := o.conversation(cmd, e)
	if err != nil {
		return nil, err
	}
	if o.runID == "" {
		o.runID = execute.NewRunID()
	}
	t := &execute.Task{
		ID: o.runID, Variant: o.variant, AgentID: o.agent, Account: o.account, Model: o.model, Memory: memory, Trace: o.trace,
		Messages: append(history, chat.Message{Role: chat.User, Text: message}), Timeout: o.timeout,
	}
	t.Budget.MicroUSD = console.MicroDollars(o.budget)
	if t.Branch, err = o.key(); err != nil || t.Branch == "" {
		return t, err
	}
	t.Checkout, err = os.Getwd()
	return t, err
}

// asRunProblem gives a run that did not begin its exit code.
func asRunProblem(cmd *cobra.Command, err error) error {
	failure, ok := errors.AsType[*run.Failure](err)
	switch {
	case ok && failure.Code == "unknown_variant":
		return console.Usage(cmd, err)
	case ok && failure.Code == "memory_too_large":
		return console.WithCode(console.ExitUsage, errhint.With(err, "ask for less with --memory, or raise the memory of the agent in runs.openclaw or runs.variants of the configuration"))
	case ok && failure.Code == "prompt_empty":
		return console.WithCode(console.ExitFailure, errhint.With(fmt.Errorf("%s: %w", failure.Code, err), "say what to do with -m TEXT, --message-file FILE, or -m - and standard input"))
	case ok:
		return console.WithCode(console.ExitFailure, fmt.Errorf("%s: %w", failure.Code, err))
	case errors.Is(err, deliver.ErrNoRelay), errors.Is(err, service.ErrNoModel):
		return console.WithCode(console.ExitUsage, err)
	case errors.Is(err, run.ErrIDReused):
		return errhint.With(err, "choose another --run-id, or ask for exactly the same")
	}
	return err
}
