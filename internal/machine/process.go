package machine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// maxListed bounds the processes that a guest may list.
	maxListed = 1024
	// waitStep is how long the guest waits for the end before it answers.
	waitStep = 20 * time.Second
	// maxWrite bounds the input that one request carries.
	maxWrite = 256 << 10
)

// Process is a command that runs, or ran, in the background.
type Process struct {
	ID         string
	PID        int    // inside the sandbox
	Command    string // for people: shortened
	Background bool   // false: it belongs to an Exec under way
	TTY        bool
	Started    time.Time
	Stdout     int64   // bytes written so far
	Stderr     int64   //
	Result     *Result // nil while it runs
}

// Start starts a command in the background and returns its id. It goes on when
// the machine is closed. Its output is kept in the sandbox, the beginning and
// the end of it; its Stdin, if not nil, stays open for Write, and is not read.
func (m *Machine) Start(ctx context.Context, command *Command) (string, error) {
	if err := command.check(); err != nil {
		return "", err
	}
	id := rand.Text()
	request := command.request(id)
	request.Exec.Background, request.Exec.Cap, request.Exec.Followed = true, nil, command.Followed
	q := &UnaryCall{Request: request}
	err := m.Call(ctx, q, &wire.Started{})
	switch {
	case err == nil || errors.Is(err, errExists): // sent twice, and the first had arrived
		return id, nil
	case ctx.Err() != nil && q.exchanged != nil:
		m.goBackground(func() { m.undo(q, id) })
	}
	return "", err
}

// undo ends a command that was started after its caller had left.
func (m *Machine) undo(q *UnaryCall, id string) {
	<-q.exchanged
	if m.End(m.ctx, id, 0) == nil {
		_ = m.Forget(m.ctx, id)
	}
}

// Processes lists the commands that the guest keeps.
func (m *Machine) Processes(ctx context.Context) ([]Process, error) {
	var found []Process
	last := ""
	for {
		var page wire.Listing
		if err := m.target(ctx, wire.OpList, &wire.Target{ID: last}, &page); err != nil {
			return nil, err
		}
		for i := range page.Processes {
			if page.Processes[i].ID <= last || len(found) >= maxListed {
				return nil, m.markBroken(fmt.Errorf("%w: endless list of processes", wire.ErrProtocol))
			}
			last = page.Processes[i].ID
			found = append(found, *processOf(&page.Processes[i]))
		}
		if !page.More || len(page.Processes) == 0 {
			return found, nil
		}
	}
}

// Process returns one command.
func (m *Machine) Process(ctx context.Context, id string) (*Process, error) {
	return m.status(ctx, id, 0)
}

// Wait waits for the end of a command in the background.
func (m *Machine) Wait(ctx context.Context, id string) (*Result, error) {
	for {
		p, err := m.status(ctx, id, waitStep)
		if err != nil {
			return nil, err
		}
		if p.Result != nil {
			return p.Result, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

func (m *Machine) status(ctx context.Context, id string, wait time.Duration) (*Process, error) {
	var status wire.Status
	q := &UnaryCall{
		Request: &wire.Request{Op: wire.OpStatus, Target: &wire.Target{ID: id, WaitMs: wire.Milliseconds(wait)}},
		Timeout: wait + CallTimeout,
	}
	if err := m.Call(ctx, q, &status); err != nil {
		return nil, err
	}
	return processOf(&status), nil
}

// Write writes input to a command in the background, and with end closes its
// input. It waits while the command does not read.
func (m *Machine) Write(ctx context.Context, id string, input []byte, end bool) error {
	for {
		part := input[:min(len(input), maxWrite)]
		var written wire.Written
		q := &UnaryCall{
			Request: &wire.Request{Op: wire.OpWrite, Target: &wire.Target{
				ID: id, Data: part, EOF: end && len(part) == len(input), WaitMs: wire.Milliseconds(time.Second),
			}},
			NoRetry: true, // it must not be written twice
		}
		if err := m.Call(ctx, q, &written); err != nil {
			return err
		}
		if written.Bytes < 0 || written.Bytes > len(part) {
			return m.markBroken(fmt.Errorf("%w: %d bytes of %d were written", wire.ErrProtocol, written.Bytes, len(part)))
		}
		input = input[written.Bytes:]
		if len(input) == 0 && written.Bytes == len(part) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// Signal sends a signal, as "SIGINT", to a command, or to it and all its
// descendants.
func (m *Machine) Signal(ctx context.Context, id, signal string, tree bool) error {
	return m.target(ctx, wire.OpSignal, &wire.Target{ID: id, Signal: signal, Tree: tree}, &struct{}{})
}

// Resize sets the size of a command's terminal.
func (m *Machine) Resize(ctx context.Context, id string, size Size) error {
	return m.target(ctx, wire.OpResize, &wire.Target{ID: id, Size: &wire.Size{Rows: size.Rows, Cols: size.Cols}}, &struct{}{})
}

// End ends a command and all its descendants, and returns when they are gone.
// Its result and its logs remain.
func (m *Machine) End(ctx context.Context, id string, grace time.Duration) error {
	q := &UnaryCall{
		Request: &wire.Request{Op: wire.OpEnd, Target: &wire.Target{ID: id, GraceMs: wire.Milliseconds(grace)}},
		Timeout: max(grace, DefaultGrace) + endTimeout,
	}
	return m.Call(ctx, q, &struct{}{})
}

// Forget drops a command that has ended, with its logs.
func (m *Machine) Forget(ctx context.Context, id string) error {
	return m.target(ctx, wire.OpForget, &wire.Target{ID: id}, &struct{}{})
}

func (m *Machine) target(ctx context.Context, op wire.Op, target *wire.Target, v any) error {
	return m.Call(ctx, &UnaryCall{Request: &wire.Request{Op: op, Target: target}}, v)
}

// processOf converts a status, with impossible values replaced.
func processOf(s *wire.Status) *Process {
	p := &Process{
		ID: wire.Printable(s.ID[:min(len(s.ID), wire.MaxID)]), PID: max(s.PID, 0),
		Command:    wire.Printable(string(s.Command[:min(len(s.Command), wire.MaxCommand)])),
		Background: s.Background, TTY: s.TTY, Started: time.UnixMilli(s.StartedMs),
		Stdout: max(s.Stdout, 0), Stderr: max(s.Stderr, 0),
	}
	if s.Exit != nil {
		p.Result = resultOf(s.Exit)
		p.Result.Stdout.Total, p.Result.Stderr.Total = p.Stdout, p.Stderr
	}
	return p
}
