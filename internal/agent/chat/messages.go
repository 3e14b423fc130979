package chat

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"
)

// messages is Anthropic's Messages.
type messages struct{}

// messagesMaxTokens is asked for where the request names no limit: the protocol
// wants one.
const messagesMaxTokens = 8192

func (messages) path() string { return "/messages" }

func (messages) headers(key string) map[string]string {
	h := map[string]string{"anthropic-version": "2023-06-01"}
	if key != "" {
		h["x-api-key"] = key
	}
	return h
}

type messagesBody struct {
	Model     string         `json:"model"`
	System    string         `json:"system,omitempty"`
	Messages  []messagesStep `json:"messages"`
	Tools     []messagesTool `json:"tools,omitempty"`
	Stream    bool           `json:"stream"`
	MaxTokens int64          `json:"max_tokens"`
	Thinking  *thinking      `json:"thinking,omitempty"`
}

// thinking lets a model think so many tokens before it answers.
type thinking struct {
	Type   string `json:"type"`
	Budget int64  `json:"budget_tokens"`
}

// budgets are the tokens of the levels. The least is the protocol's own.
func budgets() map[Level]int64 {
	return map[Level]int64{Minimal: 1024, Low: 2048, Medium: 8192, High: 16384}
}

// think asks a model to think before the first step of its answer. In later steps the
// protocol wants its thoughts back, which are not kept: those it takes without.
func (b *messagesBody) think(r *Request) {
	budget := budgets()[r.Thinking]
	if n := len(r.Messages); budget == 0 || n == 0 || r.Messages[n-1].Role != User {
		return
	}
	b.Thinking = &thinking{"enabled", budget}
	b.MaxTokens += budget
}

type messagesStep struct {
	Role    string          `json:"role"`
	Content []messagesBlock `json:"content"`
}

type messagesBlock struct {
	Type      string         `json:"type"`
	Text      string         `json:"text,omitempty"`
	ID        string         `json:"id,omitempty"`
	Name      string         `json:"name,omitempty"`
	Input     jsontext.Value `json:"input,omitempty"`
	ToolUseID string         `json:"tool_use_id,omitempty"`
	Content   any            `json:"content,omitempty"` // of a result: text, or blocks
	IsError   bool           `json:"is_error,omitzero"`
	Source    *imageSource   `json:"source,omitempty"`
}

// imageSource is a picture within a request.
type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type messagesTool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	InputSchema jsontext.Value `json:"input_schema"`
}

func (messages) body(r *Request) any {
	b := messagesBody{Model: r.Model, System: r.System, Stream: true, MaxTokens: cmp.Or(r.MaxTokens, messagesMaxTokens)}
	b.think(r)
	for i := range r.Messages {
		b.Messages = appendStep(b.Messages, &r.Messages[i])
	}
	for _, f := range r.Functions {
		b.Tools = append(b.Tools, messagesTool{f.Name, f.Description, f.Schema})
	}
	return &b
}

// appendStep adds a message. Results of tools are the user's words here, and
// steps of the same role are one.
func appendStep(steps []messagesStep, m *Message) []messagesStep {
	role, blocks := string(m.Role), messagesBlocks(m)
	if m.Role == Tool {
		role = string(User)
	}
	if n := len(steps); n > 0 && steps[n-1].Role == role {
		steps[n-1].Content = append(steps[n-1].Content, blocks...)
		return steps
	}
	return append(steps, messagesStep{role, blocks})
}

func messagesBlocks(m *Message) []messagesBlock {
	if m.Role == Tool {
		return []messagesBlock{{Type: "tool_result", ToolUseID: m.CallID, Content: resultContent(m), IsError: m.IsError}}
	}
	var blocks []messagesBlock
	if m.Text != "" || len(m.Calls) == 0 {
		blocks = append(blocks, messagesBlock{Type: "text", Text: cmp.Or(m.Text, " ")})
	}
	for _, c := range m.Calls {
		blocks = append(blocks, messagesBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: object(c.Args)})
	}
	return blocks
}

// resultContent is what a result of a tool says: its text, with its pictures as blocks.
func resultContent(m *Message) any {
	if len(m.Images) == 0 {
		return m.Text
	}
	blocks := []messagesBlock{{Type: "text", Text: cmp.Or(m.Text, " ")}}
	for i := range m.Images {
		blocks = append(blocks, messagesBlock{Type: "image", Source: &imageSource{"base64", m.Images[i].MediaType, m.Images[i].base64()}})
	}
	return blocks
}

// object is a call's arguments as the object that the protocol wants, also if
// the model wrote something else.
func object(args string) jsontext.Value {
	if v := jsontext.Value(args); v.Kind() == '{' && v.IsValid() {
		return v
	}
	return jsontext.Value("{}")
}

func (messages) reader(limit int, tell func(string)) reader {
	return &messagesReader{answerBuilder: answerBuilder{left: limit, tell: tell}, blocks: map[int]*callBuild{}}
}

type messagesReader struct {
	answerBuilder
	blocks map[int]*callBuild // calls, by the number of their block
}

type messagesEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Model string        `json:"model"`
		Usage messagesUsage `json:"usage"`
	} `json:"message"`
	ContentBlock struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		Name string `json:"name"`
		Text string `json:"text"`
	} `json:"content_block"`
	Delta struct {
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage messagesUsage `json:"usage"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

type messagesUsage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

func (r *messagesReader) read(data []byte) (bool, error) {
	var event messagesEvent
	if err := decode(data, &event); err != nil {
		return false, &Error{Code: CodeGarbage, Message: "an event of the answer is no event: " + oneLine(err.Error()), Err: err}
	}
	switch event.Type {
	case "message_start":
		r.Model = oneLine(event.Message.Model)
		r.count(event.Message.Usage)
	case "content_block_start":
		return false, r.open(&event)
	case "content_block_delta":
		return false, r.add(&event)
	case "message_delta":
		r.count(event.Usage)
		if event.Delta.StopReason != "" {
			r.ended, r.Stop = true, messagesStop(event.Delta.StopReason)
		}
	case "message_stop":
		if !r.ended {
			return false, &Error{Code: CodeCut, Message: "the answer ended without saying why"}
		}
		return true, r.validate()
	case "error":
		return false, &Error{Code: codeInStream(event.Error.Type + " " + event.Error.Message), Message: oneLine(event.Error.Message)}
	}
	return false, nil
}

// count takes the latest figures: they grow in the course of an answer.
func (r *messagesReader) count(u messagesUsage) {
	if u.Input+u.CacheRead+u.CacheWrite > 0 {
		r.Usage.Input = u.Input + u.CacheRead + u.CacheWrite
		r.Usage.CacheRead, r.Usage.CacheWrite = u.CacheRead, u.CacheWrite
	}
	r.Usage.Output = max(r.Usage.Output, u.Output)
}

func (r *messagesReader) open(e *messagesEvent) error {
	if e.ContentBlock.Type != "tool_use" {
		return r.addText(e.ContentBlock.Text)
	}
	c, err := r.call(len(r.calls))
	if err != nil {
		return err
	}
	c.id, c.name = e.ContentBlock.ID, e.ContentBlock.Name
	r.blocks[e.Index] = c
	return nil
}

func (r *messagesReader) add(e *messagesEvent) error {
	if e.Delta.PartialJSON == "" {
		return r.addText(e.Delta.Text)
	}
	c, ok := r.blocks[e.Index]
	if !ok {
		return &Error{Code: CodeGarbage, Message: "arguments came for a tool call that was not begun"}
	}
	return r.addArgs(c, e.Delta.PartialJSON)
}

func messagesStop(reason string) Stop {
	switch reason {
	case "tool_use":
		return WantsTool
	case "max_tokens", "model_context_window_exceeded":
		return TooLong
	case "refusal":
		return Refused
	}
	return Finished
}
