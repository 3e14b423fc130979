package ws

import (
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/session/attach"
	"github.com/atoll-run/atoll/internal/secret"
)

// hello returns the answer to connect: version, methods, events, the state that the
// token may see, and the limits.
func (c *conn) hello(own secret.Value) any {
	s := c.server
	server := map[string]any{"version": s.Version, "connId": c.id}
	features := map[string]any{"methods": s.names(c.version), "events": events()}
	policy := map[string]any{"maxPayload": s.Limits.Frame, "maxBufferedBytes": s.Limits.Buffered, "tickIntervalMs": s.Limits.Tick.Milliseconds()}
	answer := map[string]any{"type": "hello-ok", "protocol": c.version, "server": server, "features": features, "snapshot": c.snapshot(), "policy": policy}
	if c.version >= protocol.V4 {
		features["capabilities"] = []string{}
		policy["attachments"] = map[string]any{"maxBytes": attach.MaxBytes, "maxImageBytes": attach.MaxBytes}
	}
	if auth := c.auth(own); auth != nil {
		answer["auth"] = auth
	}
	return answer
}

// auth returns the connection's scopes and the token of its device. Version 3 sends
// it only to devices.
func (c *conn) auth(own secret.Value) map[string]any {
	if c.version < protocol.V4 && own.IsEmpty() {
		return nil
	}
	auth := map[string]any{"role": "operator", "scopes": slices.Clone(c.granted())}
	if c.version >= protocol.V4 {
		auth["method"] = c.method
	}
	if !own.IsEmpty() {
		auth["deviceToken"], auth["issuedAtMs"] = own.Reveal(), time.Now().UnixMilli()
	}
	return auth
}

// granted returns the connection's scopes, never null.
func (c *conn) granted() scopes {
	if c.scopes == nil {
		return scopes{}
	}
	return c.scopes
}

// snapshot returns the current state. It contains no paths of the host.
func (c *conn) snapshot() map[string]any {
	presence, version := c.server.hub.presence(c)
	agent := c.server.defaultAgent(c.ctx)
	defaults := map[string]any{"defaultAgentId": agent, "mainKey": "main", "mainSessionKey": "agent:" + agent + ":main", "scope": "per-sender"}
	snapshot := map[string]any{
		"presence": presence, "health": c.health(c.ctx), "stateVersion": version,
		"uptimeMs": time.Since(c.server.began).Milliseconds(), "sessionDefaults": defaults, "authMode": c.method,
	}
	if c.version >= protocol.V4 {
		defaults["modelConfigured"], defaults["ownership"], defaults["selectionRequired"] = true, "sole", false
		snapshot["suspension"] = map[string]any{"phase": "accepting"}
	}
	return snapshot
}

// events are the names of all events.
func events() []string {
	return []string{"connect.challenge", "agent", "chat", "presence", "tick", "shutdown", "health", "sessions.changed", "sync.changed"}
}
