package rest

import (
	"bytes"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/machine"
)

// execEvents are the events of a command.
var execEvents = &eventStream{
	description: "The first event is started, with an ExecStart. stdout and stderr have an ExecOutput: a command waits for a reader that is slow, and nothing is left out. The last is ended, with an ExecResult, or problem, with a Problem. A stream that the reader closes ends the command.",
	data:        []reflect.Type{reflect.TypeFor[api.ExecStart](), reflect.TypeFor[api.ExecOutput]()},
}

// enter returns the running sandbox of the path to work in.
func (c *call) enter() (*sandboxes.Inside, error) {
	r, err := c.madeSandbox()
	if err != nil {
		return nil, err
	}
	return c.Made.Enter(c.ctx(), r)
}

// exec runs a command, and answers with its result or with events.
func (s *Server) exec(c *call, _ *none, body *api.ExecRequest) error {
	inside, err := c.enter()
	if err != nil {
		return err
	}
	defer inside.Leave()
	command, err := inside.Command(body)
	if err != nil {
		return err
	}
	if len(body.Stdin) > 0 {
		command.Stdin = bytes.NewReader(body.Stdin)
	}
	leave, err := c.openStream()
	if err != nil {
		return err
	}
	defer leave()
	if wantsEvents(c.r, false) {
		return c.followExec(inside, command)
	}
	return c.waitExec(inside, command, body.OutputBytes)
}

// openStream counts a command or a stream of the caller until leave is called.
func (c *call) openStream() (leave func(), err error) {
	leave, ok := c.active.openStream(c.caller.Token, c.Limit.Streams)
	if !ok {
		return nil, fmt.Errorf("%w: %d streams and commands are open", access.ErrTooMany, c.Limit.Streams)
	}
	return leave, nil
}

// waitExec runs a command to its end and answers with what it wrote.
func (c *call) waitExec(inside *sandboxes.Inside, command *machine.Command, most int64) error {
	if most == 0 {
		most = sandboxes.DefaultOutput
	}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr, command.OutputLimit = &stdout, &stderr, most
	result, err := c.Made.Exec(inside, command)
	if err != nil {
		return err
	}
	result.Stdout, result.Stderr = stdout.String(), stderr.String()
	return c.answer(http.StatusOK, result)
}

// followExec runs a command and sends what it writes as it comes. What the reader has
// not taken holds the command up.
func (c *call) followExec(inside *sandboxes.Inside, command *machine.Command) error {
	events := c.openEvents()
	defer events.close()
	if err := events.send(api.ExecStarted, "", &api.ExecStart{At: time.Now().UTC()}); err != nil {
		return err
	}
	command.Stdout, command.Stderr = &outputEvents{events, api.ExecStdout}, &outputEvents{events, api.ExecStderr}
	result, err := c.Made.Exec(inside, command)
	if err != nil {
		return events.fail(err)
	}
	return events.send(api.ExecEnded, "", result)
}

// outputEvents sends what a command writes to one output.
type outputEvents struct {
	events *eventWriter
	name   string
}

func (o *outputEvents) Write(b []byte) (int, error) {
	if err := o.events.send(o.name, "", &api.ExecOutput{Data: b}); err != nil {
		return 0, err
	}
	return len(b), nil
}

// eventWriter writes server-sent events, and heartbeats while there are none.
type eventWriter struct {
	*call
	mu   sync.Mutex
	done chan struct{}
	beat sync.WaitGroup
}

// openEvents begins an answer of events.
func (c *call) openEvents() *eventWriter {
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.Header().Set("X-Accel-Buffering", "no")
	e := &eventWriter{call: c, done: make(chan struct{})}
	e.beat.Go(e.beats)
	return e
}

func (e *eventWriter) close() {
	close(e.done)
	e.beat.Wait()
}

func (e *eventWriter) beats() {
	beat := time.NewTicker(e.Limit.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-e.done:
			return
		case <-beat.C:
			e.mu.Lock()
			_ = e.write([]byte(": alive\n\n")) // the next event fails, too
			e.mu.Unlock()
		}
	}
}

// send sends an event, with an id if there is one.
func (e *eventWriter) send(name, id string, v any) error {
	var b bytes.Buffer
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	b.WriteString("event: " + name + "\ndata: ")
	if err := appendJSON(&b, v); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.write(b.Bytes())
}

// fail sends the problem that ended a stream.
func (e *eventWriter) fail(err error) error {
	return e.send(api.ExecProblem, "", e.problem(err))
}
