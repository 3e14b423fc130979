package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/tool"
)

// pictures returns how many pictures a request has, and the texts of its results.
func pictures(q *chat.Request) (number int, texts string) {
	for _, m := range q.Messages {
		number += len(m.Images)
		texts += m.Text
	}
	return number, texts
}

// takesPictures has a model call a tool so often that answers with a picture of a size.
func takesPictures(t *testing.T, times, size int) *stage {
	t.Helper()
	var answers []any
	for range times {
		answers = append(answers, calls("change"))
	}
	s := newStage(t, answers...)
	s.box.do = func(context.Context, string) (agent.Result, error) {
		return agent.Result{Text: "a picture", Images: []chat.Image{{MediaType: "image/png", Data: make([]byte, size)}}}, nil
	}
	return s
}

// TestImages: the model sees the newest pictures, of a bounded number and size; so does
// the next process, and a model that takes none is told.
func TestImages(t *testing.T) {
	s := takesPictures(t, 12, 10)
	if _, err := s.Run(t.Context(), "look"); err != nil {
		t.Fatal(err)
	}
	if n, text := pictures(s.model.asked[12]); n != 8 || strings.Count(text, "not shown any more") != 4 {
		t.Errorf("%d pictures, %s", n, text)
	}
	s.reopen(t)
	s.Models[0].NoImages = true
	if _, err := s.Run(t.Context(), "again"); err != nil {
		t.Fatal(err)
	}
	if n, text := pictures(s.model.asked[13]); n != 0 || strings.Count(text, "takes none") != 8 {
		t.Errorf("a model without pictures: %d, %s", n, text)
	}
	s.Models[0].NoImages = false
	if _, err := s.Run(t.Context(), "again"); err != nil {
		t.Fatal(err)
	}
	if n, _ := pictures(s.model.asked[14]); n != 8 {
		t.Errorf("the next process has %d pictures", n)
	}
}

// TestLargeImages: pictures are bounded together, in a request and on disk.
func TestLargeImages(t *testing.T) {
	s := takesPictures(t, 8, chat.MaxImage)
	s.Models[0].ContextWindow = 1_000_000
	if _, err := s.Run(t.Context(), "look"); err != nil {
		t.Fatal(err)
	}
	if n, _ := pictures(s.model.asked[8]); n != 3 {
		t.Errorf("%d large pictures in a request", n)
	}
	s.reopen(t)
	if _, err := s.Run(t.Context(), "again"); err != nil {
		t.Fatal(err)
	}
	if n, text := pictures(s.model.asked[9]); n > 3 || !strings.Contains(text, "not shown any more") {
		t.Errorf("%d large pictures came from the disk", n)
	}
}

// showing is a browser whose answer has pictures.
type showing []tool.Image

func (b showing) Do(context.Context, *tool.BrowserArgs) (*tool.Result, error) {
	return &tool.Result{Where: tool.WhereBrowser, Text: "ok", Images: b}, nil
}

// TestToolsetImages: pictures of a result reach the model, unless they are too large.
func TestToolsetImages(t *testing.T) {
	all := policy.ResolveTools(config.ToolLists{Global: config.ToolList{Allow: []string{"*"}}}, "")
	browser := showing{{MediaType: "image/jpeg", Data: []byte("x")}, {MediaType: "image/jpeg", Data: make([]byte, chat.MaxImage+1)}}
	set := tool.New(tool.Options{Caller: tool.Caller{Policy: all}, Isolated: &tool.Location{}, Browser: browser})
	result, err := set.Call(t.Context(), "browser", jsontext.Value(`{"action":"screenshot"}`))
	if err != nil || len(result.Images) != 2 {
		t.Fatalf("%+v, %v", result, err)
	}
	told, err := agent.Toolset{Set: set}.Call(t.Context(), "browser", `{"action":"screenshot"}`)
	if err != nil || len(told.Images) != 1 || told.Images[0].MediaType != "image/jpeg" || !strings.Contains(told.Text, "make a smaller one") {
		t.Errorf("%q, %d pictures, %v", told.Text, len(told.Images), err)
	}
}
