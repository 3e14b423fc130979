package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/mcp"
)

// bearer sends a token with every request, and notes the session.
type bearer struct {
	token   string
	mu      sync.Mutex
	session string
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err == nil && answer.Header.Get("Mcp-Session-Id") != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.session = answer.Header.Get("Mcp-Session-Id")
	}
	return answer, err
}

// mcpOver connects the SDK's own client to a gateway.
func mcpOver(g *gatewayProcess, b *bearer) (*sdk.ClientSession, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	return client.Connect(context.Background(), &sdk.StreamableClientTransport{Endpoint: "http://" + g.address + serve.MCPPath, HTTPClient: &http.Client{Transport: b}, MaxRetries: -1}, nil)
}

// mcpExec runs a command and returns what it said.
func mcpExec(ctx context.Context, s *sdk.ClientSession, command string) (string, error) {
	text, err := mcpCall(ctx, s, "sandbox_exec", map[string]any{"command": command})
	if held, runs := strings.CutPrefix(text, "still running as "); runs { // on a busy machine the image of an account takes long
		id, _, _ := strings.Cut(held, ":")
		return mcpCall(ctx, s, "sandbox_process", map[string]any{"action": "wait", "id": id, "wait": patience.Seconds()})
	}
	return text, err
}

// mcpCall calls a tool and returns its text; what the tool says is wrong is an error.
func mcpCall(ctx context.Context, s *sdk.ClientSession, name string, arguments map[string]any) (string, error) {
	result, err := s.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return "", err
	}
	text := result.Content[0].(*sdk.TextContent).Text //nolint:forcetypeassert // a panic fails the test
	if result.IsError {
		return text, fmt.Errorf("%s", text)
	}
	return text, nil
}

const mcpHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// send sends a raw HTTP request, and returns its status and body.
func (g *gatewayProcess) send(t *testing.T, method, body string, header map[string]string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+g.address+serve.MCPPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range header {
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	answer, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body) // what there is of it
	return answer.StatusCode, string(text)
}

// A token works in its own sandbox over HTTP, until it is revoked.
func TestGatewayMCP(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	desk := serve.Tokens(s.open().Installation)
	create := func(spec access.Spec) (*bearer, string) {
		text, made, err := desk.Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		return &bearer{token: text.Reveal()}, made.ID
	}
	ann, id := create(access.Spec{Scope: access.Run, Account: "ann"})
	again, _ := create(access.Spec{Scope: access.Admin, Account: "ann"})
	other, _ := create(access.Spec{Scope: access.Admin, Account: "other"})
	looker, _ := create(access.Spec{Scope: access.Read, Account: "ann"})
	first, err := mcpOver(g, ann)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := mcpExec(t.Context(), first, "echo kept >kept.txt; pwd"); err != nil || !strings.HasPrefix(out, "/workspace\n") {
		t.Errorf("%q, %v", out, err)
	}
	if list, err := first.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 18 {
		t.Errorf("%v, %v", list, err)
	}
	second, err := mcpOver(g, again)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := mcpExec(t.Context(), second, "ls"); err != nil || strings.Contains(out, "kept.txt") {
		t.Errorf("another token's sandbox has %q, %v", out, err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	g.refusesOthers(t, ann, other, looker)
	ended := make(chan error, 1)
	go func() { _, err := mcpExec(t.Context(), first, "touch begun; exec sleep 1000"); ended <- err }()
	if out, err := mcpExec(t.Context(), first, "until test -e begun; do sleep 0.02; done; cat kept.txt"); err != nil || !strings.HasPrefix(out, "kept\n") {
		t.Errorf("%q, %v", out, err)
	}
	if err := desk.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the command of a revoked token ended well")
	}
	eventually(t, "a sandbox runs on", func() bool {
		n, err := s.open().SandboxesOf(t.Context(), "ann")
		return err == nil && n > 0 && !s.anyRuns()
	})
}

// anyRuns reports whether a sandbox runs.
func (s *site) anyRuns() bool {
	all, _, err := s.open().List(s.t.Context(), 0)
	for i := range all {
		if all[i].Running {
			return true
		}
	}
	return err != nil
}

// refusesOthers tries the session of a token with others, and from where it must not be.
func (g *gatewayProcess) refusesOthers(t *testing.T, owner, other, looker *bearer) {
	t.Helper()
	token := func(b *bearer) map[string]string { return map[string]string{"Authorization": "Bearer " + b.token} }
	with := func(b *bearer, name, value string) map[string]string {
		h := token(b)
		h[name] = value
		return h
	}
	for name, c := range map[string]struct {
		method, body string
		header       map[string]string
		status       int
	}{
		"no token":            {http.MethodPost, mcpHello, nil, http.StatusUnauthorized},
		"a wrong token":       {http.MethodPost, mcpHello, map[string]string{"Authorization": "Bearer x"}, http.StatusUnauthorized},
		"a scope that looks":  {http.MethodPost, mcpHello, token(looker), http.StatusForbidden},
		"another's session":   {http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, with(other, "Mcp-Session-Id", owner.session), http.StatusNotFound},
		"another's stream":    {http.MethodGet, "", with(other, "Mcp-Session-Id", owner.session), http.StatusNotFound},
		"another's end":       {http.MethodDelete, "", with(other, "Mcp-Session-Id", owner.session), http.StatusNotFound},
		"no session":          {http.MethodGet, "", token(owner), http.StatusNotFound},
		"an unknown session":  {http.MethodPost, mcpHello, with(owner, "Mcp-Session-Id", "x"), http.StatusNotFound},
		"a page elsewhere":    {http.MethodPost, mcpHello, with(owner, "Origin", "https://evil.example"), http.StatusForbidden},
		"another name":        {http.MethodPost, mcpHello, with(owner, "Host", "evil.example"), http.StatusMisdirectedRequest},
		"no JSON":             {http.MethodPost, "{", token(owner), http.StatusBadRequest},
		"not begun":           {http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, token(owner), http.StatusOK},
		"another kind":        {http.MethodPost, mcpHello, with(owner, "Content-Type", "text/plain"), http.StatusUnsupportedMediaType},
		"a body that is long": {http.MethodPost, strings.Repeat(" ", mcp.MaxHTTPBody+1), token(owner), http.StatusRequestEntityTooLarge},
		"another method":      {http.MethodPut, mcpHello, with(owner, "Mcp-Session-Id", owner.session), http.StatusMethodNotAllowed},
	} {
		if status, text := g.send(t, c.method, c.body, c.header); status != c.status || status == http.StatusOK && !strings.Contains(text, `"error"`) {
			t.Errorf("%s: %d, want %d: %s", name, status, c.status, text)
		}
	}
	statuses := map[int]int{}
	for range mcp.MaxSessionsPerClient + 1 {
		status, _ := g.send(t, http.MethodPost, mcpHello, token(other))
		statuses[status]++
	}
	if statuses[http.StatusOK] != mcp.MaxSessionsPerClient || statuses[http.StatusTooManyRequests] != 1 {
		t.Errorf("sessions of one token: %v", statuses)
	}
}
