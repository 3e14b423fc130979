package fakellm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Dialect is a way to talk to models.
type Dialect int

// The dialects, by the names that their makers give them.
const (
	Chat      Dialect = iota // OpenAI's Chat Completions
	Messages                 // Anthropic's Messages
	Responses                // OpenAI's Responses
	Vectors                  // OpenAI's Embeddings: no conversation at all
	Gemini                   // Google's generateContent
)

// endpoints are the ends of the paths that are served.
var endpoints = []struct {
	suffix  string
	dialect Dialect
	counts  bool
}{
	{"/chat/completions", Chat, false},
	{"/messages", Messages, false},
	{"/messages/count_tokens", Messages, true},
	{"/responses", Responses, false},
	{"/embeddings", Vectors, false},
	{":generateContent", Gemini, false},
	{":streamGenerateContent", Gemini, false},
	{":countTokens", Gemini, true},
}

// Read reads a request, or says why it is none that is served: with status 404
// where nothing is.
func Read(w http.ResponseWriter, r *http.Request) (*Request, error) {
	for _, e := range endpoints {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, e.suffix) {
			request := &Request{At: time.Now(), Path: r.URL.Path, Header: r.Header.Clone(), Dialect: e.dialect, Counts: e.counts}
			return request, request.read(http.MaxBytesReader(w, r.Body, maxBody))
		}
	}
	return nil, fmt.Errorf("%s %s is not served here", r.Method, r.URL.Path)
}

func (r *Request) read(body io.Reader) (err error) {
	if r.Body, err = io.ReadAll(body); err != nil {
		return err
	}
	if err := json.Unmarshal(r.Body, r); err != nil {
		return err
	}
	switch r.Dialect {
	case Messages:
		r.nameResults()
	case Responses:
		return r.readInput()
	case Vectors:
		return r.readTexts()
	case Gemini:
		return r.readContents()
	}
	return nil
}

// nameResults gives messages that hold results of tools their role: in the
// Messages dialect it is the user who brings them.
func (r *Request) nameResults() {
	for i := range r.Messages {
		m := &r.Messages[i]
		if slices.ContainsFunc(partsOf(m.Content), func(p part) bool { return p.Type == "tool_result" }) {
			m.Role = "tool"
		}
	}
}

// item is a piece of a Responses conversation.
type item struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
}

// readInput makes messages of the items of a Responses conversation.
func (r *Request) readInput() error {
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		r.Messages = []Message{{Role: "user", Content: r.Input}}
		return nil
	}
	var items []item
	if err := json.Unmarshal(r.Input, &items); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	for _, it := range items {
		m := it.message()
		if n := len(r.Messages); m.Role == "assistant" && n > 0 && r.Messages[n-1].Role == "assistant" {
			continue // words and calls of one answer
		}
		r.Messages = append(r.Messages, m)
	}
	return nil
}

func (i *item) message() Message {
	switch {
	case strings.HasSuffix(i.Type, "_output"):
		return Message{Role: "tool", Content: i.Output}
	case i.Role != "":
		return Message{Role: i.Role, Content: i.Content}
	default: // calls of tools, thoughts
		return Message{Role: "assistant", Content: i.Content}
	}
}
