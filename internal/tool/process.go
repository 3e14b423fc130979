package tool

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/policy"
)

// processAction is what the process tool does.
type processAction string

// The actions.
const (
	actionList   processAction = "list"
	actionPoll   processAction = "poll"
	actionLogs   processAction = "logs"
	actionWrite  processAction = "write"
	actionSignal processAction = "signal"
	actionKill   processAction = "kill"
	actionWait   processAction = "wait"
	actionForget processAction = "forget"
)

func processActions() []processAction {
	return []processAction{actionList, actionPoll, actionLogs, actionWrite, actionSignal, actionKill, actionWait, actionForget}
}

// stream is one output of a process.
type stream string

// The streams.
const (
	streamOut stream = "stdout"
	streamErr stream = "stderr"
)

func streams() []stream { return []stream{streamOut, streamErr} }

const (
	// maxPollWait bounds how long a poll waits for something new.
	maxPollWait = 30 * time.Second
	// maxWait bounds how long one call waits for the end of a process.
	maxWait = 10 * time.Minute
	// writeWait bounds how long a process may take to read its input.
	writeWait = 5 * time.Second
	// killGrace lies between the friendly signal and the other one.
	killGrace = 2 * time.Second
	// maxShown bounds the processes in one list.
	maxShown = 200
)

type processArgs struct {
	Action processAction `json:"action" jsonschema:"list all; poll: new output and state; logs: output from an offset; write to its input; send a signal; kill it and all its processes; wait for its end; forget an ended one."`
	ID     string        `json:"id,omitzero" jsonschema:"Process id that exec gave. Needed for everything but list."`
	Input  string        `json:"input,omitzero" jsonschema:"For write: text for its standard input."`
	EOF    bool          `json:"eof,omitzero" jsonschema:"For write: no more input will come."`
	Signal string        `json:"signal,omitzero" jsonschema:"For signal: a name such as SIGINT."`
	Wait   float64       `json:"wait,omitzero" jsonschema:"For poll and wait: seconds to wait at most (poll 30, wait 600)."`
	Stream stream        `json:"stream,omitzero" jsonschema:"For logs: which output offset is for. Default stdout."`
	Offset int64         `json:"offset,omitzero" jsonschema:"For logs: byte to start at; negative: that many before the end."`
}

func (a *processArgs) check() (problems []error) {
	add := func(bad bool, text string) {
		if bad {
			problems = append(problems, errors.New(text))
		}
	}
	add(!slices.Contains(processActions(), a.Action), fmt.Sprintf(`"/action" must be one of %v, not %s`, processActions(), quote(string(a.Action))))
	add(a.ID == "" && a.Action != actionList, `"/id" is missing: the action list shows the ids`)
	add(a.Action == actionSignal && a.Signal == "", `"/signal" is missing`)
	add(a.Wait < 0 || math.IsNaN(a.Wait) || a.Wait > maxWait.Seconds(), fmt.Sprintf(`"/wait" must be between 0 and %d seconds`, int(maxWait.Seconds())))
	add(a.Stream != "" && !slices.Contains(streams(), a.Stream), `"/stream" must be stdout or stderr`)
	return problems
}

func processTool() Tool {
	return define(Tool{
		Name:        "process",
		Description: "Follow and control commands that exec started in the background.",
	}, runProcess)
}

func runProcess(ctx context.Context, c *call, a *processArgs) (*Result, error) {
	if a.Action == actionList {
		return c.listProcesses(ctx)
	}
	p, err := c.findProcess(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	m := c.at.Machine
	switch a.Action {
	case actionPoll:
		return c.poll(ctx, a)
	case actionLogs:
		return c.logs(ctx, a, p)
	case actionWrite:
		return c.write(ctx, a)
	case actionSignal:
		if err := m.Signal(ctx, a.ID, signalName(a.Signal), true); err != nil {
			return nil, err
		}
		return &Result{Text: fmt.Sprintf("%s sent to %s and its processes", signalName(a.Signal), a.ID)}, nil
	case actionKill:
		if err := m.End(ctx, a.ID, killGrace); err != nil {
			return nil, err
		}
		return &Result{Text: a.ID + " and all its processes have ended"}, nil
	case actionForget:
		return c.forget(ctx, p)
	}
	return c.wait(ctx, a)
}

// write gives input to a process, and does not wait for one that reads nothing.
func (c *call) write(ctx context.Context, a *processArgs) (*Result, error) {
	waiting, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	err := c.at.Machine.Write(waiting, a.ID, []byte(a.Input), a.EOF)
	if waiting.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("process %s did not read all of its input within %v", a.ID, writeWait)
	}
	if err != nil {
		return nil, err
	}
	return &Result{Text: fmt.Sprintf("%s written to %s", sizeText(int64(len(a.Input))), a.ID)}, nil
}

func signalName(name string) string {
	name = strings.ToUpper(strings.TrimSpace(name))
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	return name
}

// start starts a command in the background.
func (c *call) start(ctx context.Context, command *machine.Command) (*Result, error) {
	command.Stdin = strings.NewReader("") // stays open for write
	id, note, err := c.at.startBackground(ctx, command)
	if err != nil {
		return nil, execFailure(err, command)
	}
	return &Result{
		Text:    fmt.Sprintf("started in the background as %s: follow it with the process tool (poll, logs, write, wait, kill)%s", id, note),
		Details: map[string]any{"id": id},
	}, nil
}

// findProcess looks for an id in every sandbox of the session and goes there.
func (c *call) findProcess(ctx context.Context, id string) (*machine.Process, error) {
	for i, at := range c.set.places() {
		p, err := at.Machine.Process(ctx, id)
		if errors.Is(err, machine.ErrNoProcess) || errors.Is(err, machine.ErrInvalid) {
			continue
		}
		c.at, c.half = at, []policy.Half{policy.HalfIsolated, policy.HalfNetworked}[i]
		return p, err
	}
	return nil, errhint.With(fmt.Errorf("process %s: %w", quote(id), machine.ErrNoProcess), "the action list shows what there is")
}

// listed is a process in a list.
type listed struct {
	ID          string       `json:"id"`
	Where       string       `json:"where"`
	PID         int          `json:"pid"`
	Command     string       `json:"command"`
	Running     bool         `json:"running"`
	Background  bool         `json:"background"`
	StartedAtMs int64        `json:"startedAtMs"`
	StdoutBytes int64        `json:"stdoutBytes"`
	StderrBytes int64        `json:"stderrBytes"`
	Exit        *execDetails `json:"exit,omitempty"`
}

func listedOf(p *machine.Process, where string) listed {
	l := listed{
		ID: p.ID, Where: where, PID: p.PID, Command: p.Command, Running: p.Result == nil, Background: p.Background,
		StartedAtMs: p.Started.UnixMilli(), StdoutBytes: p.Stdout, StderrBytes: p.Stderr,
	}
	if p.Result != nil {
		details := detailsOf(p.Result)
		l.Exit = &details
	}
	return l
}

func (c *call) listProcesses(ctx context.Context) (*Result, error) {
	all := []listed{}
	for i, at := range c.set.places() {
		found, err := at.Machine.Processes(ctx)
		if err != nil {
			return nil, err
		}
		where := []policy.Half{policy.HalfIsolated, policy.HalfNetworked}[i]
		for j := range found {
			if found[j].Background { // the others belong to calls of exec
				all = append(all, listedOf(&found[j], string(where)))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b listed) int { return int(b.StartedAtMs - a.StartedAtMs) })
	return &Result{Text: listText(all), Details: all}, nil
}

func listText(all []listed) string {
	if len(all) == 0 {
		return "no processes"
	}
	var b strings.Builder
	for _, p := range all[:min(len(all), maxShown)] {
		fmt.Fprintf(&b, "%s  %s  %s out, %s err  %s\n", p.ID, stateText(p), sizeText(p.StdoutBytes), sizeText(p.StderrBytes), p.Command)
	}
	if len(all) > maxShown {
		fmt.Fprintf(&b, "[%d older ones not shown]\n", len(all)-maxShown)
	}
	return b.String()
}

func stateText(p listed) string {
	switch {
	case p.Running:
		return "running"
	case p.Exit.Signal != "":
		return p.Exit.Signal
	}
	return fmt.Sprintf("exit %d", p.Exit.ExitCode)
}

// forget drops an ended process; of one that runs nothing may be lost.
func (c *call) forget(ctx context.Context, p *machine.Process) (*Result, error) {
	if p.Result == nil {
		return nil, errhint.With(fmt.Errorf("process %s still runs", p.ID), "kill it first")
	}
	if err := c.at.Machine.Forget(ctx, p.ID); err != nil {
		return nil, err
	}
	c.set.polls.drop(p.ID)
	return &Result{Text: p.ID + " is forgotten"}, nil
}

// wait waits for the end of a process, but not for ever.
func (c *call) wait(ctx context.Context, a *processArgs) (*Result, error) {
	limit := maxWait
	if a.Wait > 0 {
		limit = time.Duration(a.Wait * float64(time.Second))
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := c.at.Machine.Wait(waiting, a.ID)
	if err != nil && (ctx.Err() != nil || waiting.Err() == nil) {
		return nil, err
	}
	return c.poll(ctx, &processArgs{ID: a.ID})
}
