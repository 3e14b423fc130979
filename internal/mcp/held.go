package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/tool"
)

const (
	// answerWithin is when a command that still runs is answered with an id: clients give
	// a call up after a minute.
	answerWithin = 20 * time.Second
	// maxHeld is how many commands of one session are held; the calls of more wait.
	maxHeld = 16
	// maxHeldWait bounds how long one call waits for a held command.
	maxHeldWait = 10 * time.Minute

	heldPrefix = "call-"
)

// heldCalls are the commands of a session whose calls were answered before their end.
type heldCalls struct {
	mu   sync.Mutex
	next int
	list []*heldCall
}

// heldCall is a call of exec that works apart from the request that began it.
type heldCall struct {
	id     string
	cancel context.CancelFunc
	done   chan struct{} // closed when the rest is set
	result *tool.Result
	err    error
}

// exec calls exec. A command that takes long is held, and a cancelled call ends it.
func (s *Session) exec(ctx context.Context, t *tool.Tool, args jsontext.Value) (*tool.Result, error) {
	if !s.enter() {
		return nil, errOver
	}
	running, cancel := context.WithCancel(s.life)
	c := &heldCall{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer s.leave()
		defer cancel()
		defer close(c.done)
		c.result, c.err = s.call(running, t, args)
	}()
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.result, c.err
	case <-timer.C:
		if s.held.add(c) {
			return stillRuns(c.id), nil
		}
	case <-ctx.Done():
	}
	return c.await(ctx)
}

// await waits for the end of a command, and ends it with the call.
func (c *heldCall) await(ctx context.Context) (*tool.Result, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		c.cancel()
		<-c.done
		return nil, context.Cause(ctx)
	}
	return c.result, c.err
}

// add holds a command; it reports false if there are too many. One whose end was never
// asked for makes room.
func (h *heldCalls) add(c *heldCall) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := 0; i < len(h.list) && len(h.list) >= maxHeld; i++ {
		if h.list[i].isOver() {
			h.list = append(h.list[:i], h.list[i+1:]...)
		}
	}
	if len(h.list) >= maxHeld {
		return false
	}
	h.next++
	c.id = fmt.Sprint(heldPrefix, h.next)
	h.list = append(h.list, c)
	return true
}

func (c *heldCall) isOver() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func stillRuns(id string) *tool.Result {
	return &tool.Result{Text: fmt.Sprintf("still running as %s: sandbox_process with the action wait or poll tells its end and output, kill ends it; start what runs for long with background", id), Details: id}
}

// heldArgs are those arguments of process that matter for held commands.
type heldArgs struct {
	Action string  `json:"action"`
	ID     string  `json:"id"`
	Wait   float64 `json:"wait"`
}

// process calls process, or does the same with a held command.
func (s *Session) process(ctx context.Context, t *tool.Tool, args jsontext.Value) (*tool.Result, error) {
	if err := s.refuse(t, args); err != nil {
		return nil, err
	}
	var a heldArgs
	_ = json.Unmarshal(args, &a) // checked above
	if strings.HasPrefix(a.ID, heldPrefix) {
		return s.held.process(ctx, &a)
	}
	result, err := s.call(ctx, t, args)
	if err == nil && a.Action == "list" {
		result.Text = strings.TrimRight(result.Text, "\n") + s.held.text()
	}
	return result, err
}

// process polls, awaits or ends a held command.
func (h *heldCalls) process(ctx context.Context, a *heldArgs) (*tool.Result, error) {
	c := h.find(a.ID)
	if c == nil {
		return nil, errhint.With(fmt.Errorf("process %q: there is none", a.ID), "the action list shows what there is")
	}
	switch a.Action {
	case "kill":
		c.cancel()
		<-c.done
		h.remove(c)
		return &tool.Result{Text: c.id + " and all its processes have ended"}, nil
	case "poll", "wait":
		return h.look(ctx, c, a)
	}
	return nil, errhint.With(errors.New("a command in the foreground takes only the actions poll, wait and kill"), "start it with background for the others")
}

// look returns the result of a held command if it is over in time.
func (h *heldCalls) look(ctx context.Context, c *heldCall, a *heldArgs) (*tool.Result, error) {
	limit := min(time.Duration(a.Wait*float64(time.Second)), maxHeldWait)
	if a.Action == "wait" && a.Wait == 0 {
		limit = answerWithin
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.done:
		h.remove(c)
		return c.result, c.err
	case <-timer.C:
		return stillRuns(c.id), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *heldCalls) find(id string) *heldCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.list {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (h *heldCalls) remove(gone *heldCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, c := range h.list {
		if c == gone {
			h.list = append(h.list[:i], h.list[i+1:]...)
			return
		}
	}
}

// text lists the held commands, a line each.
func (h *heldCalls) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for _, c := range h.list {
		state := "running in the foreground"
		if c.isOver() {
			state = "over: poll it for its result"
		}
		fmt.Fprintf(&b, "\n%s  %s", c.id, state)
	}
	return b.String()
}
