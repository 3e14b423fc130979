package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/mcp"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// MCPPath is where the gateway serves the Model Context Protocol, over streamable HTTP.
const MCPPath = "/mcp"

// mcpRoute serves MCPPath for callers that may run something, and passes every other
// request on.
type mcpRoute struct {
	*Gateway
	sessions *mcp.Handler
	next     http.Handler
}

// ServeHTTP implements http.Handler.
func (m *mcpRoute) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != MCPPath {
		m.next.ServeHTTP(w, r)
		return
	}
	if err := m.serve(w, r); err != nil {
		refuseMCP(w, err)
	}
}

func (m *mcpRoute) serve(w http.ResponseWriter, r *http.Request) error {
	caller, err := m.access.Identify(r)
	if err != nil {
		return err
	}
	if !caller.May(access.Run) {
		return access.ErrScope
	}
	if err := m.access.Limiter.Admit(caller); err != nil {
		return err
	}
	share := membudget.Share{Budget: m.inbound, Holder: caller.Token, MinBuffer: 64 << 10, MaxBuffer: mcp.MaxHTTPBody + 1}
	defer share.Free()
	body, err := membudget.ReadAll(http.MaxBytesReader(w, r.Body, mcp.MaxHTTPBody), &share)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return m.sessions.ServeClient(w, r, m.client(caller, r))
}

// client is a caller, as sessions know it.
func (m *mcpRoute) client(c *access.Caller, r *http.Request) *mcp.Client {
	return &mcp.Client{
		ID:    c.Token,
		Watch: func() (<-chan struct{}, func()) { return m.access.Tokens.Watch(c) },
		Open: func(ctx context.Context) (*mcp.Session, error) {
			s, err := m.open(ctx, c, r.URL.Query().Get("agent"))
			m.access.Audit(ctx, access.LogIn{Caller: c, Path: MCPPath, From: access.Remote(r), Denied: err})
			return s, err
		},
	}
}

// open opens a session in the sandbox of a token, which no other token shares.
func (m *mcpRoute) open(ctx context.Context, c *access.Caller, agent string) (*mcp.Session, error) {
	id := config.NormalizeAgentID(cmp.Or(agent, m.parts.Config.DefaultAgent()))
	if !slices.Contains(m.parts.Config.Agents(), id) || id == config.DirectoryAgent || id == config.APIAgent {
		return nil, &api.Problem{Status: http.StatusBadRequest, Code: "unknown_agent", Detail: "there is no such agent", Hint: "leave the parameter agent out for the default one"}
	}
	key := "agent:" + id + ":mcp-" + strings.ToLower(c.Token)
	allowDestroy, keepRunning := m.parts.Config.MCP()
	return mcp.Open(ctx, mcp.Options{
		Agents: m.parts.Agents, Models: m.parts.Models, Sync: m.parts.Sync,
		Subject:      provide.Subject{SessionKey: key, Account: c.Account, MostSandboxes: m.access.Limiter.Quota(c).Sandboxes, Adjust: alone},
		Changes:      api.SyncSubject{Session: key, Account: c.Account, Scope: string(config.ScopeSession)},
		AllowDestroy: allowDestroy, KeepRunning: keepRunning, Public: c.Account != "",
	})
}

// alone gives a session a sandbox of its own.
func alone(agent *config.Agent) { agent.Sandbox.Scope = config.ScopeSession }

// refuseMCP answers with a problem of RFC 9457, as the other routes do.
func refuseMCP(w http.ResponseWriter, err error) {
	p := &api.Problem{Status: http.StatusBadRequest, Code: "invalid_request", Detail: "the request could not be served"}
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case errors.Is(err, access.ErrDenied):
		p.Status, p.Code, p.Detail = http.StatusUnauthorized, "unauthorized", access.ErrDenied.Error()
		w.Header().Set("WWW-Authenticate", "Bearer")
	case errors.Is(err, access.ErrScope):
		p.Status, p.Code, p.Detail = http.StatusForbidden, "forbidden", "this needs a token with the scope "+string(access.Run)
	case errors.Is(err, access.ErrTooMany), errors.Is(err, mcp.ErrTooManySessions), errors.Is(err, membudget.ErrHolder):
		p.Status, p.Code, p.Detail = http.StatusTooManyRequests, "rate_limited", err.Error()
		w.Header().Set("Retry-After", "5")
	case errors.Is(err, membudget.ErrTotal):
		p.Status, p.Code, p.Detail = http.StatusServiceUnavailable, "busy", err.Error()
		w.Header().Set("Retry-After", "5")
	case errors.Is(err, mcp.ErrNoSession):
		p.Status, p.Code, p.Detail = http.StatusNotFound, "not_found", err.Error()
	case tooLarge:
		p.Status, p.Code, p.Detail = http.StatusRequestEntityTooLarge, "body_too_large", err.Error()
		w.Header().Set("Connection", "close")
	}
	if said, ok := errors.AsType[*api.Problem](err); ok {
		p = said
	}
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.MarshalWrite(w, p) // the caller may be gone
}
