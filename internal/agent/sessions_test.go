package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/tool"
)

// converse leaves a finished conversation.
func converse(t *testing.T, dir, id, message string) {
	t.Helper()
	s := newStage(t, calls("look"), says("answer to "+message))
	s.path = filepath.Join(dir, id+".jsonl")
	s.reopen(t)
	if _, err := s.Run(t.Context(), message); err != nil {
		t.Fatal(err)
	}
}

func TestSessionsShowOnlyWhatTheyMay(t *testing.T) {
	dir := t.TempDir()
	converse(t, dir, "mine", "first words of mine")
	converse(t, dir, "theirs", "first words of theirs")
	// Both may be of the same tick of the kernel's clock.
	earlier := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "mine.jsonl"), earlier, earlier); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.jsonl")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		all  bool
		want []string
	}{{false, []string{"mine"}}, {true, []string{"theirs", "mine"}}} {
		s := agent.Sessions{Dir: dir, Own: "mine", All: c.all}
		list, err := s.List(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, i := range list {
			ids = append(ids, i.ID)
			if i.Title != "first words of "+i.ID || i.Own != (i.ID == "mine") || i.Size == 0 {
				t.Errorf("%+v", i)
			}
		}
		if diff := cmp.Diff(c.want, ids); diff != "" {
			t.Errorf("all %v: %s", c.all, diff)
		}
		_, err = s.History(t.Context(), "theirs", 10)
		if (err == nil) != c.all {
			t.Errorf("all %v: history of another session: %v", c.all, err)
		}
		for _, id := range []string{"../mine", ".", "none", "a/b", strings.Repeat("x", 300), "a\nb"} {
			if _, err := s.History(t.Context(), id, 10); err == nil {
				t.Errorf("history of %q", id)
			}
		}
	}
}

func TestHistory(t *testing.T) {
	dir := t.TempDir()
	converse(t, dir, "mine", "hello")
	s := agent.Sessions{Dir: dir, Own: "mine"}
	got, err := s.History(t.Context(), "", 10)
	if err != nil {
		t.Fatal(err)
	}
	want := []tool.SessionMessage{{Role: "user", Text: "hello"}, {Role: "assistant", Calls: []string{"look"}}, {Role: "tool", Text: "look ok"}, {Role: "assistant", Text: "answer to hello"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if last, err := s.History(t.Context(), "", 1); err != nil || len(last) != 1 || last[0].Text != "answer to hello" {
		t.Errorf("%+v, %v", last, err)
	}
	if list, err := (agent.Sessions{Dir: filepath.Join(dir, "none")}).List(t.Context(), 1); err != nil || len(list) != 0 {
		t.Errorf("no directory: %v, %v", list, err)
	}
}

// A conversation that is shortened on request keeps its last part, and is read as
// such by the next.
func TestCompactOnRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.jsonl")
	transcript, err := agent.OpenTranscript(path, "c")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		role := []chat.Role{chat.User, chat.Assistant}[i%2]
		if err := transcript.Add(chat.Message{Role: role, Text: strings.Repeat("many words ", 200)}); err != nil {
			t.Fatal(err)
		}
	}
	before, after, err := transcript.Compact()
	if err != nil || before != 20 || after >= 15 || after < 3 {
		t.Errorf("%d, %d, %v", before, after, err)
	}
	if err := transcript.Close(); err != nil {
		t.Fatal(err)
	}
	messages, err := agent.ReadTranscript(path)
	if err != nil || len(messages) != after || !strings.Contains(messages[0].Text, "shortened") {
		t.Errorf("%d messages, %v", len(messages), err)
	}
}
