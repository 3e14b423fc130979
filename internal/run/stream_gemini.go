package run

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// geminiLine is a line of gemini --output-format stream-json.
type geminiLine struct {
	Type    string         `json:"type"` // init, message, tool_use, tool_result, error, result
	Role    string         `json:"role"`
	Content string         `json:"content"`
	Tool    string         `json:"tool_name"`
	Call    string         `json:"tool_id"`
	Args    jsontext.Value `json:"parameters"`
	Status  string         `json:"status"` // success or error
	Output  string         `json:"output"`
	Message string         `json:"message"` // of type error
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
	Stats struct {
		Input  int64 `json:"input_tokens"` // with cached ones
		Output int64 `json:"output_tokens"`
		Cached int64 `json:"cached"`
	} `json:"stats"`
}

// geminiEvents is the streamReader of Gemini CLI.
func geminiEvents(line []byte) []Event {
	var m geminiLine
	if !decodeLine(line, &m) {
		return nil
	}
	switch m.Type {
	case "message":
		if m.Role == "assistant" {
			return []Event{{Type: "text_delta", Text: m.Content}} // comes in pieces
		}
	case "tool_use":
		return []Event{{Type: "tool_call", Call: &chat.Call{ID: m.Call, Name: m.Tool, Args: string(m.Args)}}}
	case "tool_result":
		return []Event{m.toolResult()}
	case "error":
		return []Event{logged(m.Message)}
	case "result":
		return []Event{used(chat.Usage{Input: m.Stats.Input, Output: m.Stats.Output, CacheRead: m.Stats.Cached}, 0)}
	}
	return nil
}

// toolResult returns the event of a call that has ended. The message of a failure
// says more than its output.
func (m *geminiLine) toolResult() Event {
	return Event{Type: "tool_result", Call: &chat.Call{ID: m.Call}, Text: nonempty(m.Error.Message, m.Output), IsError: m.Status == "error"}
}

// gemini updates the answer: the pieces of text since the last tool call, or why
// the task failed.
func (a *streamAnswer) gemini(line []byte) {
	var m geminiLine
	if !decodeLine(line, &m) || m.Type == "" {
		return
	}
	a.known = true
	switch {
	case m.Type == "message" && m.Role == "assistant":
		a.text.WriteString(m.Content)
	case m.Type == "tool_use":
		a.text.Reset()
	case m.Type == "result" && m.Status == "error":
		a.failure = nonempty(m.Error.Message, "the agent reports a failure")
	}
}
