package scripted

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Request is what the model was asked, as far as it looks at it.
type Request struct {
	At     time.Time   `json:"-"` // of its arrival
	Path   string      `json:"-"`
	Header http.Header `json:"-"`
	Body   []byte      `json:"-"` // as it came

	Model         string    `json:"model"`
	Messages      []Message `json:"messages"`
	Stream        bool      `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// Message is one of a conversation.
type Message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // text, or a list of parts
}

// Text is what a message says, its parts joined.
func (m Message) Text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(m.Content, &parts)
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
	}
	return b.String()
}

// Last is the text of everything after the model's last answer: the results of
// its tools, or what the user said.
func (r *Request) Last() string {
	var texts []string
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "assistant" {
			break
		}
		texts = append(texts, m.Text())
	}
	slices.Reverse(texts)
	return strings.Join(texts, "\n")
}

// ToolNames are the names of the tools that were offered.
func (r *Request) ToolNames() (names []string) {
	for _, tool := range r.Tools {
		names = append(names, tool.Function.Name)
	}
	return names
}

// answers counts what the model has said in the conversation, or only since the
// user's last words.
func (r *Request) answers(anew bool) (n int) {
	for _, m := range r.Messages {
		switch {
		case m.Role == "assistant":
			n++
		case m.Role == "user" && anew:
			n = 0
		}
	}
	return n
}
