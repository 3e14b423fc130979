package gatewaytest

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/run"
)

// Script is an agent whose task is a shell script and whose answer is what it
// prints. A line "say WORDS" on its standard error is an event.
func Script(timeout time.Duration) run.Variant {
	v := run.Custom{ID: "sandbox:agent", Argv: []string{"/bin/sh", "-c", "{task}"}, Read: "text", Timeout: timeout}.Variant()
	v.Event = func(line []byte) (run.Event, bool) {
		text, ok := strings.CutPrefix(string(line), "say ")
		return run.Event{Type: "text_delta", Text: text}, ok
	}
	return v
}

// Host runs programs without a sandbox, and bills a fixed amount.
type Host struct{ run string }

// Make returns the host as the sandbox of a run.
func (Host) Make(_ context.Context, o *run.SandboxRequest) (run.Sandbox, error) {
	return Host{o.Run}, nil
}

// Find finds no sandbox.
func (Host) Find(context.Context, string) (run.Sandbox, error) { return nil, nil }

// Settle returns a fixed bill.
func (Host) Settle(context.Context, string) (run.Bill, error) { return bill() }

// Name returns the name of the run's sandbox.
func (h Host) Name() string { return "sbx-" + h.run }

// Image returns host.
func (Host) Image() string { return "host" }

// Write writes nothing.
func (Host) Write(context.Context, []run.File) error { return nil }

// Deliver has nothing to take.
func (Host) Deliver(context.Context, *run.Receipt) (string, error) { return "", nil }

// Remove removes nothing.
func (Host) Remove(context.Context) error { return nil }

// Grant grants nothing.
func (Host) Grant(context.Context, *grant.Terms) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, nil
}

// Exec runs a program of the host.
func (Host) Exec(ctx context.Context, c *machine.Command) (*machine.Result, error) {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &machine.Result{ExitCode: exit.ExitCode()}, nil
	}
	return &machine.Result{}, err
}

// Echo is a worker of sessions that answers with the message.
type Echo struct{}

// Resolve accepts every model but fake/unknown.
func (Echo) Resolve(_, model string) (string, error) {
	if model == "fake/unknown" {
		return "", errNoModel
	}
	return model, nil
}

// Work answers with the message.
func (Echo) Work(_ context.Context, j *session.Job, _ func(session.Event)) (*session.Outcome, error) {
	return &session.Outcome{Text: "you said " + j.Message, Model: j.Model, Usage: chat.Usage{Input: 1, Output: 2}}, nil
}

// History returns one message.
func (Echo) History(context.Context, *session.Entry, int) ([]chat.Message, error) {
	return []chat.Message{{Role: chat.User, Text: "hi"}}, nil
}

// Forget does nothing.
func (Echo) Forget(context.Context, *session.Entry) error { return nil }

// Compact does nothing.
func (Echo) Compact(context.Context, *session.Entry) (before, after int, err error) { return 0, 0, nil }
