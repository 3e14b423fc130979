package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/publicerr"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/tool"
)

const (
	// maxCalls is how many calls of one session work at once; more are refused.
	maxCalls = 16
	// progressEvery is how often a client that asks for it is told that a call works.
	progressEvery = 2 * time.Second
)

// work is what a call does.
type work func(ctx context.Context) (*sdk.CallToolResult, error)

// during does the work of a call within the session's limits, and tells the client that it
// goes on. What fails is a result with the reason, for the model.
func (s *Session) during(ctx context.Context, req *sdk.CallToolRequest, do work) (*sdk.CallToolResult, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return s.failed(errhint.With(fmt.Errorf("%d calls are under way", maxCalls), "wait for one of them")), nil
	}
	if !s.enter() {
		return nil, errOver
	}
	defer s.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	defer s.tell(ctx, req)()
	result, err := do(ctx)
	if err != nil && ctx.Err() == nil {
		return s.failed(err), nil
	}
	return result, err
}

var errOver = errors.New("the session is over")

// tell sends progress until the returned function is called.
func (s *Session) tell(ctx context.Context, req *sdk.CallToolRequest) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		begun, tick := time.Now(), time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			seconds := time.Since(begun).Truncate(time.Second)
			err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: token, Progress: seconds.Seconds(), Message: fmt.Sprintf("%s works since %v", req.Params.Name, seconds),
			})
			if err != nil {
				return
			}
		}
	}()
	return func() {
		cancel()
		select {
		case <-ended:
		case <-s.life.Done(): // the client may read nothing any more
		}
	}
}

// call calls a tool of package tool in the sandbox.
func (s *Session) call(ctx context.Context, t *tool.Tool, args jsontext.Value) (*tool.Result, error) {
	if err := s.refuse(t, args); err != nil {
		return nil, err
	}
	box, err := s.tools(ctx)
	if err != nil {
		return nil, err
	}
	if t.Name == toolExec {
		if err := s.audit(box, args); err != nil {
			return nil, err
		}
	}
	result, err := box.Call(ctx, t.Name, args)
	if isGone(err) {
		s.dropBox(box)
		err = errhint.With(err, "call again: the sandbox is made ready anew")
	}
	if err == nil && t.Name == toolExec {
		s.noteExec(result)
	}
	return result, err
}

// audit writes a command to the audit log before it is run.
func (s *Session) audit(box *host.Toolbox, args jsontext.Value) error {
	var command struct {
		Argv []string `json:"argv"`
	}
	_ = json.Unmarshal(args, &command) // checked before
	if len(command.Argv) == 0 {
		command.Argv = []string{"/bin/sh", "-lc", ""}
	}
	return s.Models.AuditCommand(box.Sandbox(), s.Subject.Account, command.Argv)
}

// isGone reports whether the sandbox behind the tools ended.
func isGone(err error) bool {
	return errors.Is(err, machine.ErrLost) || errors.Is(err, machine.ErrBroken) || errors.Is(err, machine.ErrClosed)
}

// refuse refuses a call before a sandbox is made for it.
func (s *Session) refuse(t *tool.Tool, args jsontext.Value) error {
	if err := t.Authorize(s.caller()); err != nil {
		return err
	}
	return t.Check(args)
}

// noteExec remembers a command that was started in the background, to end it with the
// session. A command that ran and failed is no failed call.
func (s *Session) noteExec(r *tool.Result) {
	r.IsError = r.IsError && r.Details == nil
	details, _ := r.Details.(map[string]any)
	if id, ok := details["id"].(string); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.started = append(s.started, id)
	}
}

// resultOf is the result of a tool for a client.
func resultOf(r *tool.Result) *sdk.CallToolResult {
	result := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: r.Text}}, IsError: r.IsError}
	for _, image := range r.Images {
		result.Content = append(result.Content, &sdk.ImageContent{Data: image.Data, MIMEType: image.MediaType})
	}
	return result
}

// failed tells a model why a call failed, with the way out if there is one.
func (s *Session) failed(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s.shown(tool.ErrorResult(err).Text)}}, IsError: true}
}

// shown is a text that does not come from inside, as the client may see it.
func (s *Session) shown(text string) string {
	if s.Public {
		text = publicerr.Text(text)
	}
	return bounded(text)
}

// said is a result of words.
func (s *Session) said(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s.shown(text)}}}
}

// maxSaid bounds the text of the tools of this package.
const maxSaid = 64 << 10

// bounded cuts a text that is too long for a result, and says so.
func bounded(text string) string {
	if len(text) <= maxSaid {
		return text
	}
	return strings.ToValidUTF8(text[:maxSaid], "") + fmt.Sprintf("\n[… %d bytes left out …]", len(text)-maxSaid)
}
