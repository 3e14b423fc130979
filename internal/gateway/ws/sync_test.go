package ws_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/ws"
)

// Decisions about changes are published to the clients that see the account, in
// version 4.
func TestSyncChanged(t *testing.T) {
	p := gateway(t, ws.Limits{})
	root, alice, bob, three := p.connect(4, fixed), p.connect(4, p.token(access.Read, "alice")), p.connect(4, p.token(access.Read, "bob")), p.connect(3, fixed)
	p.SyncChanged("alice", ws.SyncChange{Agent: "main", Session: "agent:main:main", Verb: "approve", Files: 3})
	p.SyncChanged("", ws.SyncChange{Agent: "dir", Verb: "undo"})
	for _, e := range []*peer{root, alice} {
		if f := e.event("sync.changed", map[string]string{"agentId": "main", "verb": "approve"}); f.text("sessionKey") != "agent:main:main" {
			t.Errorf("%s", f.raw)
		}
	}
	root.event("sync.changed", map[string]string{"agentId": "dir", "verb": "undo"})
	for _, e := range []*peer{alice, bob, three} {
		e.must("status", nil) // after what was published
		if said := e.transcript(); strings.Contains(said, `"verb":"undo"`) || e != alice && strings.Contains(said, `"verb":`) {
			t.Errorf("%s", said)
		}
	}
}
