package app_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/audit"
)

// waitingRun starts a run of an account that waits, and returns it when its program runs.
func (g *gatewayProcess) waitingRun(t *testing.T, account string) *api.Run {
	t.Helper()
	begun, err := g.Start(t.Context(), &api.RunRequest{GraphID: "waits", Message: "wait", Account: account}, "")
	if err != nil {
		t.Fatal(err)
	}
	var now *api.Run
	eventually(t, "the run does not execute", func() bool {
		now, err = g.Run(t.Context(), begun.ID)
		return err == nil && now.Step == "executing" && now.Sandbox != ""
	})
	return now
}

// as returns a client with a new token.
func (g *gatewayProcess) as(t *testing.T, scope, account string) (*client.Client, string) {
	t.Helper()
	token, err := g.CreateToken(t.Context(), &api.CreateToken{Scope: scope, Account: account})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: "http://" + g.address, Token: token.Text})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, token.Text
}

// dialTerminal connects to a terminal with a token, and returns the status of a refusal.
func (g *gatewayProcess) dialTerminal(t *testing.T, token, box, process string) (*websocket.Conn, int) {
	t.Helper()
	ws, response, err := websocket.Dial(t.Context(), "ws://"+g.address+"/api/v1/sandboxes/"+box+"/processes/"+process+"/terminal", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}},
	})
	if err != nil {
		if response == nil {
			t.Fatal(err)
		}
		return nil, response.StatusCode
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	return ws, 0
}

// An operator has a terminal in the sandbox that a run of its account uses, while the run
// lives, and the audit log has it. Other accounts find no such sandbox, and who may only
// run commands is refused.
func TestGatewayTerminalOfRun(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	s.set("runs.variants.waits", map[string]any{"name": "Waits", "argv": []string{"/bin/sh", "-c", "echo of the run > mark; exec sleep 600"}, "read": "text"})
	g := s.gateway(time.Minute)
	ctx := t.Context()
	run := g.waitingRun(t, "acme")
	shell := &api.StartProcess{Argv: []string{"sh"}, Terminal: &api.TerminalSize{Rows: 20, Cols: 60}, Env: map[string]string{"PS1": "> "}}
	operator, operatorToken := g.as(t, "operator", "acme")
	p, err := operator.StartProcess(ctx, run.Sandbox, shell)
	if err != nil || !p.Terminal {
		t.Fatalf("%+v, %v", p, err)
	}
	other, otherToken := g.as(t, "operator", "other")
	if _, err := other.StartProcess(ctx, run.Sandbox, shell); !isProblem(err, "sandbox_not_found") {
		t.Errorf("another account: %v", err)
	}
	runner, runnerToken := g.as(t, "run", "acme")
	if _, err := runner.StartProcess(ctx, run.Sandbox, shell); !isProblem(err, "forbidden") {
		t.Errorf("the scope run: %v", err)
	}
	for token, want := range map[string]int{otherToken: http.StatusNotFound, runnerToken: http.StatusForbidden} {
		if _, status := g.dialTerminal(t, token, run.Sandbox, p.ID); status != want {
			t.Errorf("the terminal answers %d, want %d", status, want)
		}
	}
	// Files, commands and ports stay those of sandboxes that programs made.
	if _, err := operator.Exec(ctx, run.Sandbox, &api.ExecRequest{Command: "true"}); !isProblem(err, "sandbox_not_found") {
		t.Errorf("exec: %v", err)
	}
	ws, status := g.dialTerminal(t, operatorToken, run.Sandbox, p.ID)
	if ws == nil {
		t.Fatal(status)
	}
	if err := ws.Write(ctx, websocket.MessageBinary, []byte("echo $(cat mark) $((40+2))\n")); err != nil {
		t.Fatal(err)
	}
	shows(t, ws, "of the run 42")
	log, err := g.Audit(ctx, api.AuditQuery{Run: run.ID})
	if kinds := auditKinds(t, log); err != nil || strings.Count(strings.Join(texts(kinds), " "), string(audit.Exec)) != 2 {
		t.Errorf("the program and the shell: %v, %v", kinds, err)
	}
	endsWithRun(t, g, run, ws)
}

func texts(kinds []audit.Kind) (list []string) {
	for _, k := range kinds {
		list = append(list, string(k))
	}
	return list
}

// endsWithRun cancels a run, which ends a terminal in its sandbox and is not held up by it.
func endsWithRun(t *testing.T, g *gatewayProcess, run *api.Run, ws *websocket.Conn) {
	t.Helper()
	if _, err := g.Cancel(t.Context(), run.ID); err != nil {
		t.Fatal(err)
	}
	for {
		if _, _, err := ws.Read(t.Context()); err != nil {
			if _, ok := errors.AsType[websocket.CloseError](err); !ok {
				t.Errorf("the terminal ended with %v", err)
			}
			break
		}
	}
	eventually(t, "the run does not end", func() bool {
		now, err := g.Run(t.Context(), run.ID)
		return err == nil && now.Step == "done"
	})
	if _, err := g.Sandbox(t.Context(), run.Sandbox); !isProblem(err, "sandbox_not_found") {
		t.Errorf("the sandbox is there: %v", err)
	}
}
