package runcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/session/attach"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox/directory"
	"github.com/atoll-run/atoll/internal/secret"
)

// agentOptions are the flags of atoll agent.
type agentOptions struct {
	agent, account, sessionID, sessionKey, model string
	scope                                        string
	message, messageFile, runID, thinking, trace string
	timeout                                      time.Duration
	maxTurns                                     int
	maxTokens                                    int64
	budget                                       float64
	local, hostTools, asJSON, events             bool
	started                                      bool // the agent was
	demo                                         bool // the scripted model answers
	messages                                     string
	attach                                       []string
	branchFlags
}

// maxMessage bounds what is read of a message; the agent's own limit is below it.
const maxMessage = 16 << 20

// NewAgentCommand returns the command `atoll agent`.
func NewAgentCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o agentOptions
	cmd := &cobra.Command{
		Use:   "agent -m TEXT [flags]",
		Short: "Give a task to an agent whose tools work in a sandbox",
		Long: `Give a task to an agent. Its tools work in the sandbox of its session, which is
made if needed; its model is asked from here, through the proxy that adds the
key, counts and keeps to budgets. The conversation is kept, and goes on with the
next message of the same session. All sessions of an agent share one sandbox and
its files, unless sandbox.scope or --scope says otherwise.

In a git checkout, with a configuration that says nothing about sandboxes, the
agent works on the checkout: in its sandbox, the one of atoll shell, where changes
are kept apart until they are approved (atoll sync), and with a conversation of its
own. --agent, --session, --account, --scope, --branch and --work-item mean others.

A key in ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY or GEMINI_API_KEY is
enough to ask a model; the configuration can name others (docs/agent.md). atoll demo
needs none.

With --branch or --work-item the agent works on a branch of the configured
repository; what it has committed is judged and pushed when it has ended
(docs/git-relay.md).

Exit codes: 0 the agent has done its task, 1 it could not be started, it failed
(meta.error of --json), or its commits could not be sent, 130 it was interrupted.`,
		Example: `  atoll agent -m "make the tests pass"
  atoll agent --agent reviewer --model anthropic/claude-sonnet-4-5 --message-file task.md
  atoll agent -m "fix the build" --work-item task.0022
  git diff | atoll agent -m - --json`,
		Args: func(cmd *cobra.Command, args []string) error { return asAgentError(e.agentArgs(cmd, args)) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := runAgent(cmd, e, &o)
			return asAgentError(errors.Join(e.sayNotStarted(&o, err), err))
		},
	}
	o.add(cmd)
	addForeignFlags(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return asAgentError(console.Usage(cmd, err)) })
	return cmd
}

func (o *agentOptions) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.message, "message", "m", "", "the task, or - for standard input")
	flags.StringVar(&o.messageFile, "message-file", "", "`file` with the task")
	flags.StringArrayVar(&o.attach, "attach", nil, "`file` for the agent, put into its workspace below media/inbound; may be given more than once")
	flags.StringVar(&o.agent, "agent", "", "agent `id` (default: the session's agent, or the default one)")
	flags.StringVar(&o.sessionKey, "session", "", "session `key` (default: the agent's main session)")
	console.OldSpelling(cmd, "session-key", "session")
	console.ScopeFlag(cmd, &o.scope)
	flags.StringVar(&o.sessionID, "session-id", "", "`id` of the conversation to go on with, or to begin")
	flags.StringVar(&o.account, "account", "", "billing account; accounts never share a sandbox")
	flags.StringVar(&o.model, "model", "", "`provider/name` of the model (default: the agent's)")
	flags.StringVar(&o.thinking, "thinking", "", "how much the model thinks first: `level` off, minimal, low, medium or high (default: as it is configured)")
	flags.StringVar(&o.runID, "run-id", "", "`id` of the run in records and bills (default: a new one)")
	console.TraceFlag(cmd, &o.trace)
	console.WorkFlag(cmd, &o.timeout, "timeout", agent.DefaultTime, "stop the agent after this `time`; 0 for a day")
	flags.IntVar(&o.maxTurns, "max-turns", agent.DefaultTurns, "most `answers` of the model")
	flags.Int64Var(&o.maxTokens, "max-tokens", agent.DefaultTokens, "most `tokens`, read and written, of all answers together")
	flags.Float64Var(&o.budget, "budget", 0, "most US `dollars` that it may spend on models")
	o.branchFlags.add(cmd)
	flags.BoolVar(&o.local, "local", false, "work in this process, even if a gateway is running")
	flags.BoolVar(&o.hostTools, "host-tools", false, "work on the host if the session is not sandboxed")
	flags.StringVar(&o.messages, "messages", "", "`file` with a conversation as JSON, whose last message is the task")
	flags.BoolVar(&o.events, "events", false, "tell on standard error what happens, as JSON, a line each")
	for _, name := range []string{"messages", "events"} { // for runs, inside
		_ = flags.MarkHidden(name)
	}
	flags.BoolVar(&o.asJSON, "json", false, "print the result as JSON and nothing else")
}

// asAgentError gives the exit codes that callers of agents know: 1 for everything
// that kept the agent from starting.
func asAgentError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if own, ok := errors.AsType[*console.ExitError](err); ok && (own.Code >= console.ExitSignal || own.Err == nil) {
		return err
	}
	return console.WithCode(console.ExitFailure, unwrapCode(err))
}

// unwrapCode is an error without its exit code.
func unwrapCode(err error) error {
	if own, ok := errors.AsType[*console.ExitError](err); ok && own.Err != nil {
		return own.Err
	}
	return err
}

func runAgent(cmd *cobra.Command, e *env, o *agentOptions) (err error) {
	if err := o.check(cmd); err != nil {
		return err
	}
	e.tellForeignFlags(cmd)
	message, history, err := o.conversation(cmd, e)
	if err != nil {
		return err
	}
	if err := (agent.Limits{}).CheckMessage(message); err != nil {
		return errhint.With(err, "say what to do with -m TEXT, --message-file FILE, or -m - and standard input")
	}
	key, err := o.key()
	if err != nil {
		return err
	}
	order := &agentOrder{options: o, message: message, history: history, branch: key}
	if order.files, err = o.readAttachments(cmd); err != nil {
		return err
	}
	if order.directory, err = e.directory(cmd.Context(), order); err != nil {
		return e.ConfigError(err, false)
	}
	g, err := e.gatewayFor(cmd.Context(), order)
	if err != nil {
		return e.ConfigError(err, false)
	}
	if g != nil {
		return agentViaGateway(cmd.Context(), g, e, order)
	}
	return e.agentAlone(cmd.Context(), order)
}

// agentOrder is a task for an agent, as it was given.
type agentOrder struct {
	options *agentOptions
	message string
	history []chat.Message
	branch  string
	files   []attach.Upload
	// directory is the git checkout that it works on; nil if it has a workspace of its own.
	directory *directory.Directory
}

// gatewayFor is the gateway that takes the task: none for agents inside of runs,
// which say what was said before, or want every event, and none for those that work on a
// directory of the caller's.
func (e *env) gatewayFor(ctx context.Context, task *agentOrder) (*backend.Gateway, error) {
	o := task.options
	if task.directory != nil || o.local || o.messages != "" || o.events {
		return nil, nil
	}
	return backend.RunningGateway(ctx, e.Env)
}

// agentAlone has the agent work in this process.
func (e *env) agentAlone(ctx context.Context, task *agentOrder) (err error) {
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, false)
	}
	if task.branch != "" {
		backend.ResumeRelays(ctx, e.Env, a)
	}
	o := task.options
	view := newAgentView(e, o.asJSON)
	if o.events {
		view.lines = &eventLines{env: e}
	}
	done := e.Progress("preparing the sandbox")
	order := o.worker(view)
	order.History, order.Branch = task.history, task.branch
	if task.directory != nil {
		if err := e.workOn(ctx, task.directory, &order); err != nil {
			return err
		}
	}
	if task.branch != "" { // its commits are taken out by processes with walls of their own
		if order.Checkout, err = os.Getwd(); err != nil {
			return err
		}
	}
	kept, drop, err := a.Agents.KeepAttachments(execute.NewRunID(), task.files)
	if err != nil {
		return err
	}
	order.Attachments = kept
	worker, err := a.Agents.NewWorker(ctx, order)
	drop()
	done()
	if errors.Is(err, deliver.ErrNoRelay) {
		return console.WithCode(console.ExitUsage, err)
	}
	if err != nil {
		return err
	}
	e.SaySharing(ctx, a, order.Who)
	defer func() { err = console.FirstOf(err, worker.Close()) }()
	o.started = true
	view.spent = worker.SpentSoFar
	view.begin(worker.Plan.Agent.ID, worker.Place())
	out, failure := worker.Agent.Run(ctx, worker.Message(task.message))
	after := context.WithoutCancel(ctx)
	spent, err := worker.Spent(after)
	delivery, unsent := worker.Deliver(after, out, failure)
	err = console.FirstOf(err, worker.Keep(after, out, failure))
	end := &agentEnd{
		session: worker.Session, text: out.Text, model: out.Model, usage: out.Usage, failure: failure, spent: spent,
		report:  worker.Report(out, spent, delivery, unsent),
		changes: e.changesOf(after, task.directory, worker.Plan.Agent.Sandbox.WorkspaceAccess),
	}
	return console.FirstOf(view.end(end), err, unsent, ctx.Err(), o.failed(failure), undelivered(delivery))
}

// failed is the exit code of an agent that failed, which was said already. The
// process inside of a run ends with 0: its envelope is what counts.
func (o *agentOptions) failed(failure error) error {
	if failure == nil || o.events {
		return nil
	}
	return console.WithCode(console.ExitFailure, nil)
}

// check refuses flags that make no sense, before anything is made.
func (o *agentOptions) check(cmd *cobra.Command) error {
	for _, name := range []string{"agent", "account", "session", "session-id", "run-id", "model"} {
		if err := console.CheckName(cmd, name); err != nil {
			return err
		}
	}
	switch {
	case o.thinking != "" && !slices.Contains(chat.Levels(), chat.Level(o.thinking)):
		return console.Usage(cmd, fmt.Errorf("--thinking %q is none of %v", o.thinking, chat.Levels()))
	case o.maxTurns < 1:
		return console.Usage(cmd, fmt.Errorf("--max-turns %d is less than 1", o.maxTurns))
	case o.maxTokens < 1:
		return console.Usage(cmd, fmt.Errorf("--max-tokens %d is less than 1", o.maxTokens))
	}
	return console.FirstOf(console.CheckScope(cmd, o.scope), console.CheckBudget(o.budget))
}

func (o *agentOptions) worker(view *agentView) host.Options {
	w := host.Options{
		Who:       (&console.SubjectFlags{Agent: o.agent, Session: o.sessionKey, Account: o.account, Scope: o.scope}).Who(),
		HostTools: o.hostTools, Model: o.model, SessionID: o.sessionID, Run: o.runID, Watch: view.event, BeforeKeys: secret.Harden,
		Thinking: chat.Level(o.thinking), Trace: o.trace, Demo: o.demo,
	}
	w.Budget.MicroUSD = console.MicroDollars(o.budget)
	w.Limits = agent.Limits{Time: o.time(), Turns: o.maxTurns, Tokens: o.maxTokens}
	return w
}

func (o *agentOptions) time() time.Duration {
	if o.timeout == 0 {
		return 24 * time.Hour
	}
	return o.timeout
}

// read finds the message: exactly one of the ways to give it.
func (o *agentOptions) read(cmd *cobra.Command, e *env) (string, error) {
	given, filed := cmd.Flags().Changed("message"), cmd.Flags().Changed("message-file")
	switch {
	case given && filed:
		return "", console.Usage(cmd, errors.New("--message and --message-file exclude each other"))
	case filed:
		f, err := os.Open(o.messageFile)
		if err != nil {
			return "", fmt.Errorf("--message-file: %w", err)
		}
		defer f.Close()
		return readMessage(f)
	case given && o.message != "-":
		return o.message, nil
	case given, !console.IsInteractive(e.In):
		return readMessage(e.In)
	}
	return "", console.Usage(cmd, errhint.With(errors.New("no message"), "give the task with -m TEXT"))
}

func readMessage(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxMessage+1))
	if err != nil {
		return "", fmt.Errorf("message: %w", err)
	}
	return string(text), nil
}
