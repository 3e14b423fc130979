package envd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/machine"
)

// procedures are the calls, by path.
func procedures() map[string]func(*rpc) error {
	return map[string]func(*rpc) error{
		"/process.Process/List":                   (*rpc).listProcesses,
		"/process.Process/Start":                  (*rpc).startProcess,
		"/process.Process/Connect":                (*rpc).connectProcess,
		"/process.Process/Update":                 (*rpc).updateProcess,
		"/process.Process/SendInput":              (*rpc).sendInput,
		"/process.Process/StreamInput":            (*rpc).streamInput,
		"/process.Process/CloseStdin":             (*rpc).closeStdin,
		"/process.Process/SendSignal":             (*rpc).sendSignal,
		"/filesystem.Filesystem/Stat":             (*rpc).stat,
		"/filesystem.Filesystem/MakeDir":          (*rpc).makeDir,
		"/filesystem.Filesystem/Move":             (*rpc).move,
		"/filesystem.Filesystem/ListDir":          (*rpc).listDir,
		"/filesystem.Filesystem/Remove":           (*rpc).remove,
		"/filesystem.Filesystem/WatchDir":         (*rpc).watchDir,
		"/filesystem.Filesystem/CreateWatcher":    (*rpc).createWatcher,
		"/filesystem.Filesystem/GetWatcherEvents": (*rpc).watcherEvents,
		"/filesystem.Filesystem/RemoveWatcher":    (*rpc).removeWatcher,
	}
}

// processConfig is a command.
type processConfig struct {
	Cmd  string            `json:"cmd"`
	Args []string          `json:"args"`
	Envs map[string]string `json:"envs"`
	Cwd  string            `json:"cwd,omitempty"`
}

// pty is a terminal.
type pty struct {
	Size struct {
		Cols int `json:"cols"`
		Rows int `json:"rows"`
	} `json:"size"`
}

func (p *pty) size() *api.TerminalSize {
	return &api.TerminalSize{Rows: p.Size.Rows, Cols: p.Size.Cols}
}

// selector names a process.
type selector struct {
	PID *int64  `json:"pid"`
	Tag *string `json:"tag"`
}

// input is what is written to a process.
type input struct {
	Stdin []byte `json:"stdin"`
	PTY   []byte `json:"pty"`
}

func (i *input) bytes() []byte {
	if i.PTY != nil {
		return i.PTY
	}
	return i.Stdin
}

// find returns the running process that a client names.
func (c *rpc) find(s selector) (*api.Process, error) {
	id := ""
	switch {
	case s.PID == nil && s.Tag == nil:
		return nil, &fault{invalidArgument, "process: pid or tag must be given"}
	case s.Tag != nil:
		id = c.server.started.tagged(c.ID, *s.Tag)
	}
	all, err := c.Processes()
	if err != nil {
		return nil, err
	}
	for i := range all {
		if p := &all[i]; p.Running && (p.ID == id && id != "" || s.PID != nil && int64(p.PID) == *s.PID) {
			return p, nil
		}
	}
	return nil, &fault{notFound, "there is no such process that runs"}
}

func (c *rpc) listProcesses() error {
	var q struct{}
	if err := c.read(&q); err != nil {
		return err
	}
	all, err := c.Processes()
	if err != nil {
		return err
	}
	type info struct {
		Config processConfig `json:"config"`
		PID    int           `json:"pid"`
		Tag    string        `json:"tag,omitempty"`
	}
	list := []info{}
	for i := range all {
		if !all[i].Running {
			continue
		}
		known := c.server.started.get(c.ID, &all[i])
		list = append(list, info{known.config, all[i].PID, known.tag})
	}
	return c.answer(map[string]any{"processes": list})
}

// event is what happens to a process.
func event(name string, v any) any {
	return map[string]any{"event": map[string]any{name: v}}
}

// startProcess starts a process and sends what it writes until its end. A client that leaves
// does not end it; the time that it gives the call does.
func (c *rpc) startProcess() error {
	var q struct {
		Process processConfig `json:"process"`
		PTY     *pty          `json:"pty"`
		Tag     string        `json:"tag"`
		Stdin   *bool         `json:"stdin"`
	}
	if err := c.read(&q); err != nil {
		return err
	}
	dir, err := c.path(q.Process.Cwd)
	if err != nil {
		return err
	}
	start := &api.StartProcess{
		Argv: append([]string{q.Process.Cmd}, q.Process.Args...), Env: q.Process.Envs, Dir: dir, Stdin: q.Stdin == nil || *q.Stdin, TimeoutSeconds: c.life.Seconds(),
	}
	if q.PTY != nil {
		start.Terminal = q.PTY.size()
	}
	process, err := c.server.Made.StartFollowed(c.Inside, start)
	if err != nil {
		return err
	}
	c.server.started.add(c.ID, process.ID, q.Tag, &q.Process)
	return c.follow(process, &api.OutputQuery{})
}

// connectProcess sends what a process writes from now on.
func (c *rpc) connectProcess() error {
	var q struct {
		Process selector `json:"process"`
	}
	if err := c.read(&q); err != nil {
		return err
	}
	process, err := c.find(q.Process)
	if err != nil {
		return err
	}
	if c.life > 0 {
		ctx, cancel := context.WithTimeout(c.Ctx, c.life)
		defer cancel()
		c.Ctx = ctx
	}
	return c.follow(process, &api.OutputQuery{Stdout: process.StdoutBytes, Stderr: process.StderrBytes})
}

// follow sends what a process writes, and how it ended. A client that is slow holds the
// process up.
func (c *rpc) follow(p *api.Process, from *api.OutputQuery) error {
	if err := c.send(event("start", map[string]int{"pid": p.PID})); err != nil {
		return err
	}
	defer c.keepAlive(event("keepalive", struct{}{}))()
	result, err := c.Follow(p.ID, from, func(part *machine.OutputPart) error {
		name := "stdout"
		switch {
		case p.Terminal:
			name = "pty"
		case part.Stderr:
			name = "stderr"
		}
		return c.send(event("data", map[string][]byte{name: part.Bytes}))
	})
	if err != nil {
		return c.streamError(err)
	}
	if result.TimedOut {
		return &fault{deadlineExceeded, "the process was ended: its time was over"}
	}
	return c.send(event("end", endOf(result)))
}

// streamError is the reason for the end of a stream whose time may be over.
func (c *rpc) streamError(err error) error {
	if cause := context.Cause(c.Ctx); errors.Is(cause, context.DeadlineExceeded) {
		return &fault{deadlineExceeded, "the time of the stream is over"}
	}
	return err
}

// exitEvent is how a process ended, in Go's words.
type exitEvent struct {
	ExitCode int    `json:"exitCode"`
	Exited   bool   `json:"exited"`
	Status   string `json:"status"`
	Error    string `json:"error,omitempty"`
}

func endOf(r *api.ExecResult) *exitEvent {
	end := &exitEvent{ExitCode: r.ExitCode, Exited: r.Signal == "", Status: fmt.Sprintf("exit status %d", r.ExitCode)}
	if r.Signal != "" {
		end.ExitCode, end.Status = -1, "signal: "+strings.ToLower(strings.TrimPrefix(r.Signal, "SIG"))
	}
	if end.ExitCode != 0 {
		end.Error = end.Status
	}
	return end
}

func (c *rpc) updateProcess() error {
	var q struct {
		Process selector `json:"process"`
		PTY     *pty     `json:"pty"`
	}
	return c.change(&q, &q.Process, func(p *api.Process) error {
		if q.PTY == nil {
			return nil
		}
		return c.Resize(p.ID, q.PTY.size())
	})
}

func (c *rpc) sendInput() error {
	var q struct {
		Process selector `json:"process"`
		Input   input    `json:"input"`
	}
	return c.change(&q, &q.Process, func(p *api.Process) error {
		return c.writeInput(p, &q.Input)
	})
}

func (c *rpc) writeInput(p *api.Process, i *input) error {
	if (i.PTY != nil) != p.Terminal {
		return &fault{failedPrecondition, "input: a process with a terminal takes pty, another stdin"}
	}
	return c.WriteInput(p.ID, &api.ProcessInput{Data: i.bytes()})
}

func (c *rpc) closeStdin() error {
	var q struct {
		Process selector `json:"process"`
	}
	return c.change(&q, &q.Process, func(p *api.Process) error {
		if p.Terminal {
			return &fault{failedPrecondition, "the input of a terminal is not closed: send the byte 4"}
		}
		return c.WriteInput(p.ID, &api.ProcessInput{End: true})
	})
}

// signals are those that clients send, by E2B's names and numbers.
var signals = map[any]string{"SIGNAL_SIGTERM": "SIGTERM", "SIGNAL_SIGKILL": "SIGKILL", float64(15): "SIGTERM", float64(9): "SIGKILL"}

func (c *rpc) sendSignal() error {
	var q struct {
		Process selector `json:"process"`
		Signal  any      `json:"signal"`
	}
	return c.change(&q, &q.Process, func(p *api.Process) error {
		name, ok := "", false
		switch q.Signal.(type) {
		case string, float64:
			name, ok = signals[q.Signal]
		}
		if !ok {
			return &fault{invalidArgument, "signal must be SIGNAL_SIGTERM or SIGNAL_SIGKILL"}
		}
		return c.Signal(p.ID, &api.ProcessSignal{Signal: name, Tree: name == "SIGKILL"})
	})
}

// change changes the process that a message names, and answers with nothing.
func (c *rpc) change(q any, s *selector, do func(*api.Process) error) error {
	if err := c.read(q); err != nil {
		return err
	}
	p, err := c.find(*s)
	if err != nil {
		return err
	}
	if err := do(p); err != nil {
		return err
	}
	return c.answer(struct{}{})
}

// streamInput writes what a client streams to a process, whose name comes first.
func (c *rpc) streamInput() error {
	_ = http.NewResponseController(c.w).EnableFullDuplex() // a connection that cannot is read first
	var p *api.Process
	for total := 0; total < math.MaxInt32; {
		var q struct {
			Start *struct {
				Process selector `json:"process"`
			} `json:"start"`
			Data *struct {
				Input input `json:"input"`
			} `json:"data"`
			Keepalive *struct{} `json:"keepalive"`
		}
		err := c.read(&q)
		if errors.Is(err, io.EOF) && p != nil {
			return c.answer(struct{}{})
		}
		switch {
		case err != nil:
			return err
		case q.Start != nil && p == nil:
			p, err = c.find(q.Start.Process)
		case q.Data != nil && p != nil:
			total += len(q.Data.Input.bytes())
			err = c.writeInput(p, &q.Data.Input)
		case q.Keepalive == nil:
			err = &fault{invalidArgument, "a stream of input begins with start, and goes on with data"}
		}
		if err != nil {
			return err
		}
	}
	return &fault{resourceExhausted, "a stream of input has at most 2 GiB"}
}
