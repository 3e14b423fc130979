package ws_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/session/attach"
	"github.com/atoll-run/atoll/internal/gateway/ws"
)

// Files come with chat.send and agent, in both versions; a bad one is refused, and
// nothing starts.
func TestAttachments(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		p := gateway(t, ws.Limits{})
		p.Sessions.Attachments = attach.NewSpool(t.TempDir(), 0, 0)
		e := p.connect(version, fixed)
		file := func(content string) []any {
			return []any{map[string]any{"type": "image", "mimeType": "image/png", "fileName": "../shot.png", "content": content}}
		}
		hi := base64.StdEncoding.EncodeToString([]byte("hi"))
		e.must("chat.send", map[string]any{"sessionKey": "main", "message": "", "idempotencyKey": "a", "attachments": file("data:image/png;base64," + hi)})
		e.event("chat", map[string]string{"runId": "a", "state": "final"})
		e.answer(e.ask("agent", map[string]any{"sessionKey": "main", "message": "x", "idempotencyKey": "b", "attachments": file(hi)}), 2)
		for _, job := range p.hand.seen() {
			if len(job.Files) != 1 || len(job.Sources) != 1 || job.Files[0].Type != "text/plain; charset=utf-8" || job.Files[0].Size != 2 {
				t.Errorf("%+v", job)
			}
		}
		if n := len(p.hand.seen()); n != 2 {
			t.Errorf("%d tasks", n)
		}
		many := strings.Split(strings.Repeat(hi+" ", attach.MaxFiles+1), " ")[:attach.MaxFiles+1]
		var all []any
		for _, content := range many {
			all = append(all, file(content)...)
		}
		for name, wrong := range map[string][]any{"no base64": file("!"), "no content": {map[string]any{"fileName": "a"}}, "too many": all} {
			f := e.call("chat.send", map[string]any{"sessionKey": "main", "message": "x", "idempotencyKey": name, "attachments": wrong})
			if f.Error == nil || f.Error.Code != protocol.CodeInvalidRequest {
				t.Errorf("%s: %+v", name, f.Error)
			}
		}
	})
}
