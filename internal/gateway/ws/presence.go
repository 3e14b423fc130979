package ws

import (
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// Who is there is told only to those of the same account, and only while they are
// few: everybody being told of everybody grows with the square of their number.
const (
	maxPresence     = 50 // entries in a list
	presenceWatcher = 64 // connections of an account that are told of changes
)

// presence is who a client can see: the gateway, itself, and others of its account.
func (h *hub) presence(c *conn) ([]any, protocol.StateVersion) {
	entries := []any{h.self()}
	if c.version < protocol.V4 || c.client.ID != backend {
		entries = append(entries, c.entry())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.accounts[c.caller.Account]
	if a == nil {
		return entries, protocol.StateVersion{Presence: 1, Health: 1}
	}
	return append(entries, a.entries(c)...), a.version
}

func (h *hub) self() map[string]any {
	host, _ := os.Hostname() // "" if it has none
	return map[string]any{
		"host": host, "version": h.server.Version, "platform": runtime.GOOS, "deviceFamily": runtime.GOOS, "mode": "gateway", "reason": "self",
		"text": "Gateway: " + host + " · app " + h.server.Version + " · mode gateway · reason self", "ts": time.Now().UnixMilli(),
	}
}

// entries are the others of an account. The hub's lock is held.
func (a *accountConns) entries(but *conn) (entries []any) {
	for c := range a.conns {
		if len(entries) >= maxPresence-2 {
			return entries
		}
		if c != but {
			entries = append(entries, c.entry())
		}
	}
	return entries
}

// entry is how a client appears to others.
func (c *conn) entry() map[string]any {
	host := c.client.DisplayName
	if host == "" {
		host = c.client.ID
	}
	e := map[string]any{
		"host": host, "version": c.client.Version, "platform": c.client.Platform, "mode": c.client.Mode, "roles": []string{"operator"},
		"scopes": slices.Clone(c.granted()), "reason": "connect", "ts": c.since.UnixMilli(), "text": "Node: " + host + " · mode " + c.client.Mode,
	}
	for key, value := range map[string]string{"deviceFamily": c.client.Family, "modelIdentifier": c.client.Model, "instanceId": c.client.Instance} {
		if value != "" {
			e[key] = value
		}
	}
	return e
}
