package chat

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// completions is OpenAI's Chat Completions.
type completions struct{}

func (completions) path() string { return "/chat/completions" }

func (completions) headers(key string) map[string]string {
	if key == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + key}
}

type completionsBody struct {
	Model         string               `json:"model"`
	Messages      []completionsMessage `json:"messages"`
	Tools         []completionsTool    `json:"tools,omitempty"`
	Stream        bool                 `json:"stream"`
	StreamOptions map[string]bool      `json:"stream_options"`
	MaxTokens     int64                `json:"max_tokens,omitzero"`
	Effort        string               `json:"reasoning_effort,omitempty"`
}

type completionsMessage struct {
	Role       string            `json:"role"`
	Content    any               `json:"content"` // text, []completionsPart, or nil
	ToolCalls  []completionsCall `json:"tool_calls,omitempty"`
	ToolCallID string            `json:"tool_call_id,omitempty"`
}

// completionsPart is a part of a message: a text or a picture.
type completionsPart struct {
	Type     string            `json:"type"`
	Text     string            `json:"text,omitempty"`
	ImageURL map[string]string `json:"image_url,omitempty"`
}

type completionsCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type completionsTool struct {
	Type     string              `json:"type"`
	Function completionsFunction `json:"function"`
}

type completionsFunction struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  jsontext.Value `json:"parameters,omitempty"`
}

func (completions) body(r *Request) any {
	b := completionsBody{Model: r.Model, Stream: true, StreamOptions: map[string]bool{"include_usage": true}, MaxTokens: r.MaxTokens, Effort: r.Thinking.effort()}
	if r.System != "" {
		b.Messages = append(b.Messages, completionsMessage{Role: "system", Content: r.System})
	}
	b.addSteps(r.Messages)
	for _, f := range r.Functions {
		b.Tools = append(b.Tools, completionsTool{"function", completionsFunction{f.Name, f.Description, f.Schema}})
	}
	return &b
}

// addSteps adds the messages. Results of tools are text alone here: their pictures follow
// the last result of an answer, as words of the user.
func (b *completionsBody) addSteps(messages []Message) {
	var pictures []completionsPart
	for i := range messages {
		if m := &messages[i]; m.Role != Tool {
			b.addPictures(&pictures)
		}
		b.Messages = append(b.Messages, completionsStep(&messages[i]))
		pictures = append(pictures, completionsPictures(&messages[i])...)
	}
	b.addPictures(&pictures)
}

// addPictures adds a message with the pictures, if there are any, and forgets them.
func (b *completionsBody) addPictures(pictures *[]completionsPart) {
	if len(*pictures) > 0 {
		b.Messages = append(b.Messages, completionsMessage{Role: string(User), Content: *pictures})
	}
	*pictures = nil
}

// completionsPictures returns the pictures of a result, each after the id of its call.
func completionsPictures(m *Message) (parts []completionsPart) {
	for i := range m.Images {
		parts = append(parts,
			completionsPart{Type: "text", Text: "Picture in the result of call " + m.CallID + ":"},
			completionsPart{Type: "image_url", ImageURL: map[string]string{"url": "data:" + m.Images[i].MediaType + ";base64," + m.Images[i].base64()}})
	}
	return parts
}

func completionsStep(m *Message) completionsMessage {
	step := completionsMessage{Role: string(m.Role), Content: m.Text, ToolCallID: m.CallID}
	if m.Text == "" && len(m.Calls) > 0 {
		step.Content = nil
	}
	for _, c := range m.Calls {
		call := completionsCall{ID: c.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = c.Name, c.Args
		step.ToolCalls = append(step.ToolCalls, call)
	}
	return step
}

func (completions) reader(limit int, tell func(string)) reader {
	return &completionsReader{answerBuilder{left: limit, tell: tell}}
}

type completionsReader struct{ answerBuilder }

type completionsChunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Delta struct {
			Content   string            `json:"content"`
			Refusal   string            `json:"refusal"`
			ToolCalls []completionsCall `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
		Details          struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
		Code    any    `json:"code"`
		Type    string `json:"type"`
	} `json:"error"`
}

func (r *completionsReader) read(data []byte) (bool, error) {
	if bytes.Equal(data, []byte("[DONE]")) {
		if !r.ended {
			return false, &Error{Code: CodeCut, Message: "the answer ended without saying why"}
		}
		return true, r.validate()
	}
	var chunk completionsChunk
	if err := decode(data, &chunk); err != nil {
		return false, &Error{Code: CodeGarbage, Message: "an event of the answer is no chunk: " + oneLine(err.Error()), Err: err}
	}
	if e := chunk.Error; e != nil {
		return false, &Error{Code: codeInStream(fmt.Sprint(e.Code, " ", e.Type, " ", e.Message)), Message: oneLine(e.Message)}
	}
	return false, r.add(&chunk)
}

func (r *completionsReader) add(chunk *completionsChunk) error {
	r.Model = cmp.Or(r.Model, oneLine(chunk.Model))
	if u := chunk.Usage; u != nil {
		r.Usage = Usage{Input: u.PromptTokens, Output: u.CompletionTokens, CacheRead: u.Details.Cached}
	}
	for _, choice := range chunk.Choices {
		if err := r.addText(choice.Delta.Content + choice.Delta.Refusal); err != nil {
			return err
		}
		for i := range choice.Delta.ToolCalls {
			if err := r.part(&choice.Delta.ToolCalls[i]); err != nil {
				return err
			}
		}
		if choice.FinishReason != "" {
			r.ended, r.Stop = true, completionsStop(choice.FinishReason)
		}
	}
	return nil
}

// part adds to the call that the chunk numbers; some providers send whole calls
// without a number.
func (r *completionsReader) part(p *completionsCall) error {
	index := len(r.calls)
	if p.Index != nil {
		index = *p.Index
	}
	c, err := r.call(index)
	if err != nil {
		return err
	}
	c.id, c.name = cmp.Or(c.id, p.ID), cmp.Or(c.name, p.Function.Name)
	return r.addArgs(c, p.Function.Arguments)
}

func completionsStop(reason string) Stop {
	switch reason {
	case "tool_calls", "function_call":
		return WantsTool
	case "length":
		return TooLong
	case "content_filter":
		return Refused
	}
	return Finished
}
