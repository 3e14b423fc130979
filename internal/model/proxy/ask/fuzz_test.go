package ask_test

import (
	stdjson "encoding/json"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/model/proxy/ask"
)

type meaning struct {
	Model   string `json:"model"`
	Stream  *bool  `json:"stream"`
	Options *struct {
		Usage *bool `json:"include_usage"`
	} `json:"stream_options"`
}

// FuzzAsk holds what is read here against two parsers that disagree with each
// other about case: whatever is accepted must mean the same to both, before and
// after the edits.
func FuzzAsk(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","stream":true}`, `{"model":"m","MODEL":"x"}`, `{"model":"m","stream":true,"stream_options":{"include_usage":false}}`,
		`{"a":{"model":"x"},"mod\u0065l":"m","stream":null,"stream_options":null}`, part(`{"type":"image_url","image_url":{"url":"data:x"}}`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var a ask.Ask
		if ask.NewReader().Read(&a, body, ask.Chat, &strict) != nil {
			return
		}
		sent := a.Append(nil, body)
		var exact, folded meaning
		if err := json.Unmarshal(sent, &exact); err != nil {
			t.Fatalf("%q: %v", sent, err)
		}
		if err := stdjson.Unmarshal(sent, &folded); err != nil {
			t.Fatalf("%q: %v", sent, err)
		}
		for _, m := range []meaning{exact, folded} {
			stream := m.Stream != nil && *m.Stream
			if m.Model != string(a.Model) || stream != a.Stream {
				t.Fatalf("%q is model %q stream %v here, %q %v there", body, a.Model, a.Stream, m.Model, stream)
			}
			if stream && (m.Options == nil || m.Options.Usage == nil || !*m.Options.Usage) {
				t.Fatalf("%q does not ask for usage", sent)
			}
		}
	})
}
