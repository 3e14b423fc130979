package fakellm

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// content is a message of Google's API.
type content struct {
	Role  string `json:"role"`
	Parts []struct {
		Text   string `json:"text"`
		Result *struct {
			Response json.RawMessage `json:"response"`
		} `json:"functionResponse"`
	} `json:"parts"`
}

// readContents makes messages of a conversation of Google's API, whose model and kind
// are in the path. What the model said at once may be in several contents.
func (r *Request) readContents() error {
	var calls string
	r.Model, calls, _ = strings.Cut(path.Base(r.Path), ":")
	r.Stream = calls == "streamGenerateContent"
	for _, c := range r.Contents {
		m := c.message()
		if n := len(r.Messages); m.Role == "assistant" && n > 0 && r.Messages[n-1].Role == "assistant" {
			continue
		}
		r.Messages = append(r.Messages, m)
	}
	return nil
}

// message returns the content with a role and words of Chat Completions.
func (c *content) message() Message {
	role := c.Role
	if role == "model" {
		role = "assistant"
	}
	var words strings.Builder
	for _, p := range c.Parts {
		words.WriteString(p.Text)
		if p.Result != nil {
			role = "tool"
			words.WriteString(resultText(p.Result.Response))
		}
	}
	text, _ := json.Marshal(words.String())
	return Message{Role: role, Content: text}
}

// resultText returns what a tool printed, or all of its result.
func resultText(response json.RawMessage) string {
	var said struct {
		Output *string `json:"output"`
	}
	if json.Unmarshal(response, &said) == nil && said.Output != nil {
		return *said.Output
	}
	return string(response)
}

// generated is an answer, or a piece of one, with parts and the words so far.
func generated(r *Request, t Turn, said int, parts ...object) object {
	u := r.Usage(t)
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	usage := object{"promptTokenCount": u.Prompt, "cachedContentTokenCount": u.Cached, "candidatesTokenCount": said, "totalTokenCount": u.Prompt + said}
	return object{"candidates": []object{candidate}, "usageMetadata": usage, "modelVersion": r.Model, "responseId": fmt.Sprintf("resp_%d", r.answers(false)+1)}
}

// finished marks an answer as its last piece.
func finished(answer object) object {
	answer["candidates"].([]object)[0]["finishReason"] = "STOP"
	return answer
}

func wholeGenerated(r *Request, t Turn) object {
	parts := []object{}
	if t.Text != "" || len(t.Calls) == 0 {
		parts = append(parts, object{"text": t.Text})
	}
	for _, c := range t.Calls {
		parts = append(parts, functionCall(c))
	}
	return finished(generated(r, t, r.Usage(t).Completion, parts...))
}

func functionCall(c Call) object {
	return object{"functionCall": object{"id": c.ID, "name": c.Name, "args": json.RawMessage(c.Arguments)}}
}

// streamGenerated sends words in pieces and each call whole. Every event has the count
// so far.
func streamGenerated(e *events, r *Request, t Turn) {
	var all []object
	for _, piece := range t.parts() {
		all = append(all, object{"text": piece})
	}
	for _, c := range t.Calls {
		all = append(all, functionCall(c))
	}
	if len(all) == 0 {
		all = []object{{"text": ""}}
	}
	last := len(all) - 1
	for i, part := range all[:last] {
		e.send("", generated(r, t, min(i, r.Usage(t).Completion), part))
	}
	e.send("", finished(generated(r, t, r.Usage(t).Completion, all[last])))
}

// aside returns the answer to a request that is no part of a conversation, which no
// script has anything to say to: one for JSON gets an example of its schema.
func (r *Request) aside() (Turn, bool) {
	if r.Dialect == Vectors {
		return Turn{}, true
	}
	if r.Generation.Schema == nil {
		return Turn{}, false
	}
	text, _ := json.Marshal(r.Generation.Schema.example())
	return Turn{Text: string(text)}, true
}

// schema is the form that an answer in JSON must have.
type schema struct {
	Type       any               `json:"type"` // a word, or several
	Properties map[string]schema `json:"properties"`
	Enum       []any             `json:"enum"`
}

// example returns a value of the schema.
func (s schema) example() any {
	switch kind := strings.ToLower(fmt.Sprint(s.Type)); {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case kind == "object":
		all := object{}
		for name, p := range s.Properties {
			all[name] = p.example()
		}
		return all
	case kind == "array":
		return []any{}
	case kind == "number" || kind == "integer":
		return 1
	case kind == "boolean":
		return false
	}
	return "scripted"
}
