package ws

import (
	"context"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/session"
)

// recentSessions is the number of sessions in a summary.
const recentSessions = 5

// healthOf returns the health of the service, as far as the token may see.
func (c *call) healthOf() (any, error) { return c.health(c.ctx), nil }

func (c *conn) health(ctx context.Context) fields {
	return c.server.healthFor(ctx, c.version, c.view(), c.server.Healthy(ctx) == nil)
}

func (s *Server) healthFor(ctx context.Context, version int, v session.View, ok bool) fields {
	began := time.Now()
	sum := s.summary(ctx, v)
	agents := []fields{}
	for i, a := range s.agentsOf(ctx) {
		agents = append(agents, fields{"agentId": a.ID, "isDefault": i == 0, "heartbeat": noHeartbeat(), "sessions": sum})
	}
	f := fields{
		"ok": ok, "ts": time.Now().UnixMilli(), "durationMs": time.Since(began).Milliseconds(), "channels": fields{}, "channelOrder": []string{},
		"channelLabels": fields{}, "heartbeatSeconds": 0, "defaultAgentId": s.defaultAgent(ctx), "agents": agents, "sessions": sum,
	}
	if version >= protocol.V4 {
		f["configReload"] = fields{"hotReloadStatus": "active"}
	}
	return f
}

// noHeartbeat says that agents have no heartbeat.
func noHeartbeat() fields {
	return fields{"enabled": false, "every": "disabled", "everyMs": nil, "prompt": "", "target": "none", "ackMaxChars": 0}
}

// summary returns the number of sessions, and the latest.
func (s *Server) summary(ctx context.Context, v session.View) fields {
	list := []fields{}
	entries, err := s.Sessions.List(ctx, v, session.Filter{Most: session.MaxList})
	if err != nil {
		s.Logger.WarnContext(ctx, "gateway: sessions cannot be listed", "error", err)
	}
	for _, e := range entries[:min(recentSessions, len(entries))] {
		list = append(list, fields{"key": e.Key, "updatedAt": e.Updated.UnixMilli(), "age": time.Since(e.Updated).Milliseconds()})
	}
	return fields{"path": multiplePaths, "count": len(entries), "recent": list}
}

// publishHealth publishes a change of the service's health.
func (s *Server) publishHealth(before bool) (now bool) {
	now = s.Healthy(s.ctx) == nil
	if now == before {
		return now
	}
	var names []string
	s.hub.each(func(name string, a *accountConns) {
		a.version.Health++
		names = append(names, name)
	})
	for _, name := range names {
		v := session.View{Account: name, All: name == ""}
		e := newEvent("health", s.healthFor(s.ctx, protocol.V3, v, now), s.healthFor(s.ctx, protocol.V4, v, now))
		s.hub.publishToAccount(name, e)
	}
	return now
}

// publishToAccount sends an event with its state to the connections of one account,
// not to those that see all.
func (h *hub) publishToAccount(name string, e encodedEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.accounts[name]; a != nil {
		version := a.version
		e.state = &version
		h.enqueue(a, []encodedEvent{e})
	}
}

// status returns what `openclaw status` shows.
func (c *call) status() (any, error) {
	sum := c.server.summary(c.ctx, c.view())
	_, model, window := c.server.defaultModel(c.ctx)
	beats, byAgent := []fields{}, []fields{}
	for _, a := range c.server.agentsOf(c.ctx) {
		beats = append(beats, fields{"agentId": a.ID, "enabled": false, "every": "disabled", "everyMs": nil})
		byAgent = append(byAgent, fields{"agentId": a.ID, "path": multiplePaths, "count": sum["count"], "recent": sum["recent"]})
	}
	f := fields{
		"heartbeat": fields{"defaultAgentId": c.server.defaultAgent(c.ctx), "agents": beats}, "channelSummary": []string{}, "queuedSystemEvents": []string{},
		"sessions": fields{
			"paths": []string{multiplePaths}, "count": sum["count"], "defaults": fields{"model": model, "contextTokens": window},
			"recent": sum["recent"], "byAgent": byAgent,
		},
	}
	if c.version >= protocol.V4 {
		f["runtimeVersion"], f["degradedSecretOwners"], f["degradedPlugins"] = c.server.Version, []string{}, []string{}
		f["tasks"] = fields{"total": 0, "active": 0, "terminal": 0, "failures": 0,
			"byStatus":  zeros("queued", "running", "succeeded", "failed", "timed_out", "cancelled", "lost"),
			"byRuntime": zeros("subagent", "acp", "cli", "cron")}
		f["taskAudit"] = fields{"total": 0, "warnings": 0, "errors": 0,
			"byCode": zeros("stale_queued", "stale_running", "lost", "delivery_failed", "missing_cleanup", "inconsistent_timestamps")}
	}
	return f, nil
}

func zeros(names ...string) fields {
	f := fields{}
	for _, name := range names {
		f[name] = 0
	}
	return f
}

func (c *call) systemPresence() (any, error) {
	entries, _ := c.server.hub.presence(c.conn)
	return entries, nil
}

// heartbeat returns null: there is none.
func (c *call) heartbeat() (any, error) { return nil, nil } //nolint:nilnil // null is the answer

// agentsOf returns the agents, the default one first; one named main if the
// catalogue fails.
func (s *Server) agentsOf(ctx context.Context) []Agent {
	agents, err := s.Catalogue.Agents(ctx)
	if err != nil {
		s.Logger.WarnContext(ctx, "gateway: agents cannot be listed", "error", err)
	}
	if len(agents) == 0 {
		return []Agent{{ID: "main", Name: "main"}}
	}
	return agents
}

func (s *Server) defaultAgent(ctx context.Context) string { return s.agentsOf(ctx)[0].ID }

// defaultModel returns the model of the default agent.
func (s *Server) defaultModel(ctx context.Context) (provider, model string, window int64) {
	provider, model, _ = strings.Cut(s.agentsOf(ctx)[0].Model, "/")
	models, err := s.Catalogue.Models(ctx)
	if err != nil {
		s.Logger.WarnContext(ctx, "gateway: models cannot be listed", "error", err)
	}
	for _, m := range models {
		if m.Provider == provider && m.ID == model {
			return provider, model, m.ContextWindow
		}
	}
	return provider, model, 0
}
