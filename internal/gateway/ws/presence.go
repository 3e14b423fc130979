package ws

import (
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// Presence is published to connections of the same account only, and only while
// they are few: the number of messages grows with the square of the connections.
const (
	maxPresence     = 50 // entries in a list
	presenceWatcher = 64 // connections of an account above which changes are not published
)

// presence returns the entries that a client may see: the gateway, itself, and
// connections of its account.
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

// entries returns the other connections of an account. The caller holds the hub's
// lock.
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

// entry returns a client as others see it.
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
