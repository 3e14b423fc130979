package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/fakellm"
)

// A file that comes with a message is in the sandbox when the agent begins, under a
// harmless name, and the agent is told where; nothing of it stays in the state
// directory.
func TestAttachmentsReachTheSandbox(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t, fakellm.Use("exec", `{"command": "cat media/inbound/*/input-notes.txt; ls media/inbound/*"}`), fakellm.Turn{Text: "done"})
	g := s.gateway(time.Minute)
	var results []string
	begun, err := g.Submit(t.Context(), "agent:main:ann:r", &api.SendRequest{
		Message: "read it", Account: "ann",
		Attachments: []api.Attachment{{Name: "../../notes.txt", Content: []byte("remember the milk")}, {Name: "shot.png", Content: []byte("\x89PNG\r\n\x1a\n")}},
	}, "files")
	if err != nil {
		t.Fatal(err)
	}
	over, err := g.TaskEvents(t.Context(), begun.ID, 0, func(e api.Event) error {
		if e.Type == "tool_result" {
			results = append(results, e.Text)
		}
		return nil
	})
	if err != nil || over.State != "done" {
		t.Fatalf("%+v, %v", over, err)
	}
	if text := strings.Join(results, "\n"); !strings.Contains(text, "remember the milk") || !strings.Contains(text, "input-shot.png") {
		t.Errorf("in the sandbox: %s", text)
	}
	history, err := g.History(t.Context(), "agent:main:ann:r", 10)
	if err != nil || len(history.Messages) == 0 {
		t.Fatalf("%+v, %v", history, err)
	}
	told := history.Messages[0].Content
	if !strings.HasPrefix(told, "[media attached 1/2: media/inbound/turn-") || !strings.Contains(told, "(image/png)]\nread it") {
		t.Errorf("the agent is told: %s", told)
	}
	if left, err := os.ReadDir(filepath.Join(s.state, "attachments")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
