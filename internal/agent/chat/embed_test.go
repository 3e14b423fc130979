package chat_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

func TestVectorsOfTexts(t *testing.T) {
	m := answering(t, 200, `{"object":"list","data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2.5]}],"usage":{"prompt_tokens":2}}`)
	got, err := client(t, chat.Provider{BaseURL: m.URL + "/v1", API: chat.APIMessages, Key: "k"}).Embed(t.Context(), "e", []string{"a", "b"})
	if err != nil || !cmp.Equal(got, [][]float32{{1, 2.5}, {3, 4}}) {
		t.Fatalf("%v, %v", got, err)
	}
	want := map[string]any{"model": "e", "input": []any{"a", "b"}, "encoding_format": "float"}
	if m.path != "/v1/embeddings" || m.header.Get("Authorization") != "Bearer k" || !cmp.Equal(m.asked, want) {
		t.Errorf("asked %s %v", m.path, m.asked)
	}
}

func TestVectorsThatDoNotCome(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		code   chat.Code
	}{
		"refused":       {402, `{"error":{"code":"budget_exceeded","message":"spent"}}`, chat.CodeBudget},
		"failing":       {503, "", chat.CodeUnavailable},
		"nonsense":      {200, "<html>", chat.CodeGarbage},
		"for nobody":    {200, `{"data":[{"index":7,"embedding":[1]}]}`, chat.CodeGarbage},
		"for one twice": {200, `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, chat.CodeGarbage},
		"no numbers":    {200, `{"data":[{"index":0,"embedding":"AAAA"}]}`, chat.CodeGarbage},
		"far too long":  {200, fmt.Sprintf(`{"data":[{"index":0,"embedding":[%s1]}]}`, strings.Repeat("1,", 1<<20)), chat.CodeTooLarge},
	} {
		m := answering(t, c.status, c.body)
		_, err := client(t, chat.Provider{BaseURL: m.URL}).Embed(t.Context(), "e", []string{"a"})
		if own, ok := errors.AsType[*chat.Error](err); !ok || own.Code != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	m := answering(t, 200, "{}")
	if _, err := client(t, chat.Provider{BaseURL: m.URL}).Embed(gone, "e", []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v", err)
	}
}
