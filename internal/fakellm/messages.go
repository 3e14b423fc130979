package fakellm

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// The shapes of a Messages answer, as Anthropic sends them.
type (
	message struct {
		ID           string       `json:"id"`
		Type         string       `json:"type"`
		Role         string       `json:"role"`
		Model        string       `json:"model"`
		Content      []any        `json:"content"`
		StopReason   *string      `json:"stop_reason"`
		StopSequence *string      `json:"stop_sequence"`
		Usage        messageUsage `json:"usage"`
	}
	messageUsage struct {
		Input   int `json:"input_tokens"`
		Written int `json:"cache_creation_input_tokens"`
		Cached  int `json:"cache_read_input_tokens"`
		Output  int `json:"output_tokens"`
	}
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	useBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
)

func messageOf(r *Request, t Turn) message {
	u := r.Usage(t)
	return message{
		ID: fmt.Sprintf("msg_%d", r.answers(false)+1), Type: "message", Role: "assistant", Model: r.Model, Content: []any{},
		Usage: messageUsage{Input: u.Prompt - u.Cached, Cached: u.Cached, Output: u.Completion},
	}
}

func stopReason(t Turn) string {
	if len(t.Calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func wholeMessage(r *Request, t Turn) message {
	m, reason := messageOf(r, t), stopReason(t)
	m.StopReason = &reason
	if t.Text != "" || len(t.Calls) == 0 {
		m.Content = append(m.Content, textBlock{"text", t.Text})
	}
	for _, c := range t.Calls {
		m.Content = append(m.Content, useBlock{"tool_use", c.ID, c.Name, json.RawMessage(c.Arguments)})
	}
	return m
}

// streamMessage sends each block as a beginning, pieces and an end.
func streamMessage(e *events, r *Request, t Turn) {
	begun := messageOf(r, t)
	begun.Usage.Output = 1
	send := func(kind string, more map[string]any) {
		more["type"] = kind
		e.send(kind, more)
	}
	send("message_start", map[string]any{"message": begun})
	send("ping", map[string]any{})
	index := 0
	block := func(beginning any, kind, field string, parts []string) {
		send("content_block_start", map[string]any{"index": index, "content_block": beginning})
		for _, part := range parts {
			send("content_block_delta", map[string]any{"index": index, "delta": map[string]string{"type": kind, field: part}})
		}
		send("content_block_stop", map[string]any{"index": index})
		index++
	}
	if t.Text != "" || len(t.Calls) == 0 {
		block(textBlock{"text", ""}, "text_delta", "text", t.parts())
	}
	for _, c := range t.Calls {
		block(useBlock{"tool_use", c.ID, c.Name, json.RawMessage("{}")}, "input_json_delta", "partial_json", cut(c.Arguments))
	}
	send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stopReason(t), "stop_sequence": nil},
		"usage": map[string]int{"output_tokens": r.Usage(t).Completion},
	})
	send("message_stop", map[string]any{})
}

// messageErrors are Anthropic's names of what went wrong.
func messageErrors(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "invalid_request_error"
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	return "api_error"
}
