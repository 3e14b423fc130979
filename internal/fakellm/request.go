package fakellm

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Request is what the model was asked, as far as it looks at it. Whatever the
// dialect, its messages have the roles of Chat Completions: results of tools are
// "tool", and what the model said at once is one message.
type Request struct {
	At      time.Time   `json:"-"` // of its arrival
	Path    string      `json:"-"`
	Header  http.Header `json:"-"`
	Body    []byte      `json:"-"` // as it came
	Dialect Dialect     `json:"-"`
	Counts  bool        `json:"-"` // it only wants to know its size

	Model         string    `json:"model"`
	Messages      []Message `json:"messages"`
	Stream        bool      `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []Tool          `json:"tools"`
	Input json.RawMessage `json:"input"` // of a Responses request: what becomes Messages
	Texts []string        `json:"-"`     // of a request for vectors: what becomes them

	Contents   []content `json:"contents"` // of Google's API: what becomes Messages
	Generation struct {
		Schema *schema `json:"responseJsonSchema"`
	} `json:"generationConfig"`
}

// Tool is one that was offered; where its name is depends on the dialect.
type Tool struct {
	Name     string `json:"name"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
	Functions []Tool `json:"functionDeclarations"`
}

// Message is one of a conversation.
type Message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // text, or a list of parts
}

// part is a piece of a message: words, or the result of a tool.
type part struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
}

// Text is what a message says, its parts joined.
func (m Message) Text() string { return textOf(m.Content) }

func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var b strings.Builder
	for _, p := range partsOf(content) {
		b.WriteString(p.Text)
		b.WriteString(textOf(p.Content))
	}
	return b.String()
}

func partsOf(content json.RawMessage) (parts []part) {
	_ = json.Unmarshal(content, &parts)
	return parts
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
		for _, f := range tool.Functions {
			names = append(names, f.Name)
		}
		if name := tool.Name + tool.Function.Name; name != "" {
			names = append(names, name)
		}
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
