package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/serve"
)

// terminal connects to the terminal of a process over the owner's socket.
func (s *site) terminal(id, process, query string) *websocket.Conn {
	s.t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.state, serve.Socket))
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	ws, response, err := websocket.Dial(s.t.Context(), "ws://localhost/api/v1/sandboxes/"+id+"/processes/"+process+"/terminal"+query, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		s.t.Fatalf("%v, %+v", err, response)
	}
	s.t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

// shows reads what a terminal shows until it contains a text.
func shows(t *testing.T, ws *websocket.Conn, text string) string {
	t.Helper()
	var all strings.Builder
	for !strings.Contains(all.String(), text) {
		kind, data, err := ws.Read(t.Context())
		if err != nil {
			t.Fatalf("%v after %q", err, all.String())
		}
		if kind == websocket.MessageBinary {
			all.Write(data)
		}
	}
	return all.String()
}

// The terminal of a process is typed into, resized, left and found again with what it
// showed; its end is reported.
func TestGatewayTerminal(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	ctx := t.Context()
	box, err := g.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.StartProcess(ctx, box.ID, &api.StartProcess{Argv: []string{"sh"}, Terminal: &api.TerminalSize{Rows: 20, Cols: 60}, Env: map[string]string{"PS1": "> "}})
	if err != nil || !p.Terminal {
		t.Fatalf("%+v, %v", p, err)
	}
	first := s.terminal(box.ID, p.ID, "")
	enter := func(ws *websocket.Conn, text string) {
		t.Helper()
		if err := ws.Write(ctx, websocket.MessageBinary, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	enter(first, "stty size; echo mark=$((40+2))\n")
	if screen := shows(t, first, "mark=42"); !strings.Contains(screen, "20 60") {
		t.Errorf("%q", screen)
	}
	if err := first.Write(ctx, websocket.MessageText, []byte(`{"resize":{"rows":33,"cols":77}}`)); err != nil {
		t.Fatal(err)
	}
	_ = first.CloseNow()
	again := s.terminal(box.ID, p.ID, "")
	replayed := shows(t, again, "mark=42")
	enter(again, "stty size; exit 7\n")
	shows(t, again, "33 77")
	var last api.TerminalEvent
	for {
		kind, data, err := again.Read(ctx)
		if err != nil {
			break
		}
		if kind == websocket.MessageText {
			if err := json.Unmarshal(data, &last); err != nil {
				t.Fatal(err)
			}
		}
	}
	if last.Type != api.TerminalEnded || last.Result == nil || last.Result.ExitCode != 7 {
		t.Errorf("%+v", last)
	}
	// Who comes with an offset gets what follows it.
	if rest := shows(t, s.terminal(box.ID, p.ID, fmt.Sprintf("?offset=%d", len(replayed))), "33 77"); strings.Contains(rest, "mark=42") {
		t.Errorf("%q", rest)
	}
}

// Sandboxes are listed in pages that nothing changes, and by what they have.
func TestGatewaySandboxPages(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	ctx := t.Context()
	var made []string
	for i := range 5 {
		box, err := g.CreateSandbox(ctx, &api.CreateSandbox{Metadata: map[string]string{"n": fmt.Sprint(i), "parity": fmt.Sprint(i % 2)}})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, box.ID)
	}
	slices.Reverse(made)
	var seen []string
	for q := (api.SandboxQuery{Order: "created", Limit: 2, Made: true}); ; {
		page, err := g.Sandboxes(ctx, q)
		if err != nil || page.Total != 5 {
			t.Fatalf("%+v, %v", page, err)
		}
		for _, box := range page.Sandboxes {
			seen = append(seen, box.ID)
			if _, err := g.Exec(ctx, box.ID, shell("true")); err != nil { // a use moves nothing
				t.Fatal(err)
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if !slices.Equal(seen, made) {
		t.Errorf("%v, want %v", seen, made)
	}
	if _, err := g.StopSandbox(ctx, made[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Exec(ctx, made[0], shell("true")); !isProblem(err, "sandbox_stopped") {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		query api.SandboxQuery
		want  int
	}{
		{api.SandboxQuery{Metadata: []string{"parity=0"}}, 3}, {api.SandboxQuery{Metadata: []string{"parity=0", "n=2"}}, 1}, {api.SandboxQuery{Metadata: []string{"n="}}, 0},
		{api.SandboxQuery{State: "stopped"}, 1}, {api.SandboxQuery{State: "running"}, 4}, {api.SandboxQuery{Account: "nobody"}, 0},
	} {
		if list, err := g.Sandboxes(ctx, c.query); err != nil || len(list.Sandboxes) != c.want || list.Total != c.want {
			t.Errorf("%+v: %+v, %v", c.query, list, err)
		}
	}
	for _, q := range []api.SandboxQuery{{Order: "size"}, {Cursor: "xx"}, {Order: "created", Cursor: "!"}, {State: "happy"}, {Metadata: []string{"n"}}} {
		if _, err := g.Sandboxes(ctx, q); !isProblem(err, "invalid_request") {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if started, err := g.StartSandbox(ctx, made[0]); err != nil || !started.Running {
		t.Errorf("%+v, %v", started, err)
	}
	if result, err := g.Exec(ctx, made[0], shell("echo again")); err != nil || result.Stdout != "again\n" {
		t.Errorf("%+v, %v", result, err)
	}
}
