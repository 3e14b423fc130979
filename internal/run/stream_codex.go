package run

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// codexLine is a line of codex exec --json.
type codexLine struct {
	Type    string    `json:"type"`
	Item    codexItem `json:"item"`
	Message string    `json:"message"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
	Usage struct {
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
		CacheRead  int64 `json:"cached_input_tokens"`
		CacheWrite int64 `json:"cache_write_input_tokens"`
	} `json:"usage"`
}

// codexItem is a message, a tool call or an error of the agent.
type codexItem struct {
	ID      string         `json:"id"`
	Type    string         `json:"type"`
	Text    string         `json:"text"`
	Message string         `json:"message"`
	Command string         `json:"command"`
	Output  string         `json:"aggregated_output"`
	Exit    *int           `json:"exit_code"`
	Status  string         `json:"status"`
	Changes jsontext.Value `json:"changes"`
	Server  string         `json:"server"`
	Tool    string         `json:"tool"`
}

// codexEvents is the streamReader of Codex.
func codexEvents(line []byte) []Event {
	var m codexLine
	if !decodeLine(line, &m) {
		return nil
	}
	switch m.Type {
	case "turn.completed":
		return []Event{used(chat.Usage(m.Usage), 0)}
	case "item.started":
		if call := m.Item.call(); call != nil {
			return []Event{{Type: "tool_call", Call: call}}
		}
	case "item.completed":
		return m.Item.completed()
	}
	return nil
}

// completed returns the events of an item that is done.
func (i *codexItem) completed() []Event {
	switch i.Type {
	case "agent_message":
		return []Event{said(i.Text)}
	case "error":
		return []Event{logged(i.Message)}
	}
	if call := i.call(); call != nil {
		return []Event{{Type: "tool_result", Call: call, Text: i.Output, IsError: i.Status == "failed" || i.Exit != nil && *i.Exit != 0}}
	}
	return nil
}

// call returns the tool call of an item; nil if it is none.
func (i *codexItem) call() *chat.Call {
	switch i.Type {
	case "command_execution":
		return &chat.Call{ID: i.ID, Name: "exec", Args: i.Command}
	case "file_change":
		return &chat.Call{ID: i.ID, Name: "edit", Args: string(i.Changes)}
	case "mcp_tool_call":
		return &chat.Call{ID: i.ID, Name: i.Server + "." + i.Tool}
	case "web_search":
		return &chat.Call{ID: i.ID, Name: "web_search"}
	}
	return nil
}

// codex updates the answer: the last message, or why the turn failed.
func (a *streamAnswer) codex(line []byte) {
	var m codexLine
	if !decodeLine(line, &m) || m.Type == "" {
		return
	}
	a.known = true
	switch {
	case m.Type == "item.completed" && m.Item.Type == "agent_message":
		a.begin(m.Item.Text)
	case m.Type == "turn.failed":
		a.failure = nonempty(m.Error.Message, "the turn failed")
	case m.Type == "error":
		a.failure = nonempty(m.Message, "the agent reports a failure")
	}
}
