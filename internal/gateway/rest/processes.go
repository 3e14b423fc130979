package rest

import (
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/machine"
)

// processEvents are the events of a process in the background.
var processEvents = &eventStream{
	description: "stdout and stderr have an ExecOutput: the process waits for a reader that is slow, and from when it is followed nothing is lost. Each has an id, after which Last-Event-ID goes on. The last is ended, with an ExecResult, or problem, with a Problem. A reader that leaves ends nothing.",
	data:        []reflect.Type{reflect.TypeFor[api.ExecOutput](), reflect.TypeFor[api.ExecResult]()}, resumable: true,
}

// enterAny is enter, and operators also enter the sandboxes of sessions and runs.
func (c *call) enterAny() (*sandboxes.Inside, error) {
	if c.Made == nil {
		return nil, sandboxes.ErrNotFound
	}
	r, err := c.Made.Find(c.ctx(), c.path("id"))
	switch {
	case err != nil:
		return nil, err
	case !c.caller.Sees(r.Account) || r.Phase == sandboxes.Snapshot:
		return nil, sandboxes.ErrNotFound
	case r.IsOfAgent() && !c.caller.May(access.Operator):
		return nil, fmt.Errorf("%w: the processes of a session's or a run's sandbox need the scope %s", access.ErrScope, access.Operator)
	}
	return c.Made.Enter(c.ctx(), r)
}

// inSandbox is a route that works with processes in the running sandbox of the path.
func inSandbox[Q, B, A any](do func(c *call, in *sandboxes.Inside, query *Q, body *B) (*A, error)) shape {
	return answers(func(c *call, query *Q, body *B) (*A, error) {
		in, err := c.enterAny()
		if err != nil {
			return nil, err
		}
		defer in.Leave()
		return do(c, in, query, body)
	})
}

func (s *Server) startProcess(_ *call, in *sandboxes.Inside, _ *none, body *api.StartProcess) (*api.Process, error) {
	return s.Made.StartProcess(in, body)
}

func (s *Server) listProcesses(_ *call, in *sandboxes.Inside, _, _ *none) (*api.Processes, error) {
	list, err := in.Processes()
	return &api.Processes{Processes: list}, err
}

func (s *Server) getProcess(c *call, in *sandboxes.Inside, q *api.ProcessQuery, _ *none) (*api.Process, error) {
	if q.WaitSeconds == 0 {
		return in.Process(in.Ctx, c.path("process"))
	}
	leave, err := c.openStream()
	if err != nil {
		return nil, err
	}
	defer leave()
	return in.AwaitProcess(c.path("process"), time.Duration(q.WaitSeconds)*time.Second)
}

func (s *Server) endProcess(c *call, in *sandboxes.Inside, _, _ *none) (*api.Process, error) {
	return in.EndProcess(c.path("process"))
}

func (s *Server) writeProcess(c *call, in *sandboxes.Inside, _ *none, body *api.ProcessInput) (*api.ProcessChanged, error) {
	return c.processChanged(in.WriteInput(c.path("process"), body))
}

func (s *Server) signalProcess(c *call, in *sandboxes.Inside, _ *none, body *api.ProcessSignal) (*api.ProcessChanged, error) {
	return c.processChanged(in.Signal(c.path("process"), body))
}

func (s *Server) resizeProcess(c *call, in *sandboxes.Inside, _ *none, body *api.TerminalSize) (*api.ProcessChanged, error) {
	return c.processChanged(in.Resize(c.path("process"), body))
}

func (c *call) processChanged(err error) (*api.ProcessChanged, error) {
	return &api.ProcessChanged{ID: c.path("process")}, err
}

// processOutput answers with what is kept of a process's output, or follows it.
func (s *Server) processOutput(c *call, q *api.OutputQuery, _ *none) error {
	in, err := c.enterAny()
	if err != nil {
		return err
	}
	defer in.Leave()
	if !wantsEvents(c.r, false) {
		output, err := in.Output(c.path("process"), q)
		if err != nil {
			return err
		}
		return c.answer(http.StatusOK, output)
	}
	if !c.caller.May(access.Run) { // a follower can hold the process up
		return fmt.Errorf("%w: to follow a process needs the scope %s", access.ErrScope, access.Run)
	}
	if err := c.lastOffsets(q); err != nil {
		return err
	}
	leave, err := c.openStream()
	if err != nil {
		return err
	}
	defer leave()
	if _, err := in.Process(in.Ctx, c.path("process")); err != nil {
		return err
	}
	return c.followProcess(in, q)
}

// lastOffsets sets the offsets that the Last-Event-ID of the request names.
func (c *call) lastOffsets(q *api.OutputQuery) error {
	last := c.r.Header.Get("Last-Event-ID")
	if last == "" {
		return nil
	}
	stdout, stderr, _ := strings.Cut(last, ".")
	var outErr, errErr error
	q.Stdout, outErr = strconv.ParseInt(stdout, 10, 64)
	q.Stderr, errErr = strconv.ParseInt(stderr, 10, 64)
	if outErr != nil || errErr != nil || q.Stdout < 0 || q.Stderr < 0 {
		return invalid(api.FieldError{Pointer: "Last-Event-ID", Detail: "must be the id of an event"})
	}
	return nil
}

// followProcess sends what a process writes until its end.
func (c *call) followProcess(in *sandboxes.Inside, q *api.OutputQuery) error {
	events := c.openEvents()
	defer events.close()
	at := *q
	result, err := in.Follow(c.path("process"), q, func(part *machine.OutputPart) error {
		name, next := api.ExecStdout, &at.Stdout
		if part.Stderr {
			name, next = api.ExecStderr, &at.Stderr
		}
		*next = part.Offset + int64(len(part.Bytes))
		return events.send(name, fmt.Sprintf("%d.%d", at.Stdout, at.Stderr), &api.ExecOutput{Data: part.Bytes, Lost: part.Lost})
	})
	if err != nil {
		return events.fail(err)
	}
	return events.send(api.ExecEnded, "", result)
}
