// Package terminal carries the terminal of a process in a sandbox over a WebSocket. Those
// in sandboxes that programs made are for callers that may run commands, those in
// sandboxes of sessions and runs for operators. Binary messages are what the terminal shows and what is typed; text
// messages are JSON: api.TerminalControl from the client, api.TerminalEvent to it. A
// client that comes again names the offset where it goes on.
package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/machine"
)

// Path is the path of the terminal of a process.
const Path = "/api/v1/sandboxes/{id}/processes/{process}/terminal"

const (
	maxMessage = 64 << 10         // bytes of a message of the client
	sendTime   = 30 * time.Second // until the client has taken a message
	pingEvery  = 30 * time.Second
)

// Handler serves terminals to authenticated callers.
type Handler struct {
	Made    *sandboxes.Service
	Origins []string // allowed browser origins, besides the request's own host
}

// ServeHTTP finds the process, upgrades the request and carries the terminal.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	offset, err := strconv.ParseInt(r.FormValue("offset"), 10, 64)
	if r.FormValue("offset") == "" {
		offset, err = 0, nil
	}
	if err != nil || offset < 0 {
		refuse(w, http.StatusUnprocessableEntity, "invalid_request", "offset must be a number of bytes")
		return
	}
	in, err := h.enter(r)
	if errors.Is(err, sandboxes.ErrNotFound) {
		refuse(w, http.StatusNotFound, "sandbox_not_found", "there is no such sandbox")
		return
	}
	if errors.Is(err, access.ErrScope) {
		refuse(w, http.StatusForbidden, "forbidden", "a terminal in the sandbox of a session or a run needs a token with the scope "+string(access.Operator))
		return
	}
	if err != nil {
		refuse(w, http.StatusNotFound, "process_not_found", "there is no such process with a terminal")
		return
	}
	defer in.Leave()
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: h.Origins, Subprotocols: []string{access.Subprotocol}})
	if err != nil {
		return // it has answered
	}
	ws.SetReadLimit(maxMessage)
	c := &conn{in: in, process: r.PathValue("process"), ws: ws}
	c.serve(offset)
}

// enter returns the running sandbox of the path, if the caller may see it and the
// process has a terminal.
func (h *Handler) enter(r *http.Request) (*sandboxes.Inside, error) {
	record, err := h.Made.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	caller := access.FromContext(r.Context())
	switch {
	case caller == nil || !caller.Sees(record.Account):
		return nil, sandboxes.ErrNotFound
	case record.IsOfAgent() && !caller.May(access.Operator):
		return nil, access.ErrScope
	}
	in, err := h.Made.Enter(r.Context(), record)
	if err != nil {
		return nil, err
	}
	process, err := in.Process(in.Ctx, r.PathValue("process"))
	if err == nil && !process.Terminal {
		err = machine.ErrNoProcess
	}
	if err != nil {
		in.Leave()
		return nil, err
	}
	return in, nil
}

func refuse(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", api.ProblemType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(&api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}) // the client may be gone
}

// conn is one client of a terminal.
type conn struct {
	in      *sandboxes.Inside
	process string
	ws      *websocket.Conn
}

// serve carries the terminal until the process ends or the client leaves.
func (c *conn) serve(offset int64) {
	ctx, cancel := context.WithCancelCause(c.in.Ctx)
	defer cancel(nil)
	c.in.Ctx = ctx
	read := make(chan struct{})
	go func() { defer close(read); cancel(c.readAll(ctx)) }()
	stop := c.ping(ctx)
	result, err := c.in.Follow(c.process, &api.OutputQuery{Stdout: offset}, func(part *machine.OutputPart) error { return c.show(ctx, part) })
	stop()
	if err == nil {
		err = c.send(ctx, &api.TerminalEvent{Type: api.TerminalEnded, Result: result})
	}
	status, reason := websocket.StatusNormalClosure, "the process has ended"
	if err != nil {
		status, reason = websocket.StatusGoingAway, "the terminal was closed"
	}
	_ = c.ws.Close(status, reason)
	<-read
}

// show sends what the terminal shows, and before that how much is lost.
func (c *conn) show(ctx context.Context, part *machine.OutputPart) error {
	if part.Lost > 0 {
		if err := c.send(ctx, &api.TerminalEvent{Type: api.TerminalLost, Bytes: part.Lost}); err != nil {
			return err
		}
	}
	return c.write(ctx, websocket.MessageBinary, part.Bytes)
}

func (c *conn) send(ctx context.Context, e *api.TerminalEvent) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return c.write(ctx, websocket.MessageText, text)
}

func (c *conn) write(ctx context.Context, kind websocket.MessageType, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return c.ws.Write(ctx, kind, b)
}

// readAll passes on what the client types and asks for, until it leaves.
func (c *conn) readAll(ctx context.Context) error {
	for {
		kind, data, err := c.ws.Read(ctx)
		if err != nil {
			return err
		}
		if kind == websocket.MessageBinary {
			err = c.in.WriteInput(c.process, &api.ProcessInput{Data: data})
		} else {
			err = c.control(data)
		}
		if err != nil {
			return err
		}
	}
}

// control does what a text message asks for.
func (c *conn) control(data []byte) error {
	var q api.TerminalControl
	if err := json.Unmarshal(data, &q); err != nil || q.Resize == nil {
		return errors.Join(err, errors.New("a message that is no TerminalControl"))
	}
	return c.in.Resize(c.process, q.Resize)
}

// ping detects a client that has vanished.
func (c *conn) ping(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(pingEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			within, end := context.WithTimeout(ctx, sendTime)
			if c.ws.Ping(within) != nil && ctx.Err() == nil {
				_ = c.ws.CloseNow()
			}
			end()
		}
	}()
	return func() { cancel(); <-done }
}
