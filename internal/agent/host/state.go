package host

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/memory"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/tool"
)

// agentDir holds what is kept about an agent.
func (h *Host) agentDir(id string) string {
	return filepath.Join(h.Paths.AtollState, "agents", id)
}

// SessionsDir holds the conversations of an agent. Accounts have one each:
// what one said is never shown to another.
func (h *Host) SessionsDir(agentID, account string) string {
	dir := h.agentDir(agentID)
	if account != "" {
		dir = filepath.Join(dir, "accounts", policy.Slug(account))
	}
	return filepath.Join(dir, "sessions")
}

// sessions are the conversations that a session's tools show: its own, and the
// others of its agent where the configuration says so.
func (h *Host) sessions(p *plan.Plan, account string) agent.Sessions {
	return agent.Sessions{
		Dir: h.SessionsDir(p.Agent.ID, account), Own: policy.Slug(p.Session.Key),
		All: !p.Sandboxed || p.Agent.Sandbox.SessionToolsVisibility == "all",
	}
}

// recall searches the memories in an agent's workspace on the host. The index
// is opened for a call and closed after it: calls are rare.
type recall struct {
	index, workspace string
	embedder         memory.Embedder // nil: words have to do
}

func (h *Host) recall(p *plan.Plan, by memory.Embedder) tool.Recall {
	return recall{filepath.Join(h.agentDir(p.Agent.ID), "memory.db"), p.AgentDir(), by}
}

// Search implements tool.Recall.
func (r recall) Search(ctx context.Context, query string, most int) (list []tool.Recollection, notice string, err error) {
	index, err := memory.Open(ctx, r.index, r.workspace)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	index.Embedder = r.embedder
	found, err := index.Search(ctx, query, most)
	if err != nil {
		return nil, "", err
	}
	for _, h := range found.Hits {
		list = append(list, tool.Recollection(h))
	}
	return list, found.Notice, nil
}

// Get implements tool.Recall.
func (r recall) Get(_ context.Context, path string, from, lines int) (string, error) {
	return memory.Get(r.workspace, path, from, lines)
}
