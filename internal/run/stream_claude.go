package run

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// claudeLine is a line of claude --output-format stream-json. Type is assistant,
// user, or result for the last one, which has the usage of the whole task.
type claudeLine struct {
	Type    string `json:"type"`
	Message struct {
		Content jsontext.Value `json:"content"`
	} `json:"message"`
	Dollars float64 `json:"total_cost_usd"`
	Usage   struct {
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
		CacheRead  int64 `json:"cache_read_input_tokens"`
		CacheWrite int64 `json:"cache_creation_input_tokens"`
	} `json:"usage"`
}

// claudeBlock is a part of a message.
type claudeBlock struct {
	Type   string         `json:"type"`
	Text   string         `json:"text"`
	ID     string         `json:"id"`
	Name   string         `json:"name"`
	Input  jsontext.Value `json:"input"`
	Of     string         `json:"tool_use_id"`
	Result jsontext.Value `json:"content"`
	Failed bool           `json:"is_error"`
}

// claudeEvents is the streamReader of Claude Code.
func claudeEvents(line []byte) (events []Event) {
	var m claudeLine
	if !decodeLine(line, &m) {
		return nil
	}
	switch m.Type {
	case "result":
		u := m.Usage
		return []Event{used(chat.Usage{Input: u.Input + u.CacheRead + u.CacheWrite, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}, m.Dollars)}
	case "assistant", "user":
		return m.blocks()
	}
	return nil
}

// blocks returns the events of a message's parts.
func (m *claudeLine) blocks() (events []Event) {
	var blocks []claudeBlock
	if json.Unmarshal(m.Message.Content, &blocks) != nil {
		return nil
	}
	for i := range blocks[:min(len(blocks), maxLineEvents)] {
		b := &blocks[i]
		switch {
		case b.Type == "text" && m.Type == "assistant":
			events = append(events, said(b.Text))
		case b.Type == "tool_use":
			events = append(events, Event{Type: "tool_call", Call: &chat.Call{ID: b.ID, Name: b.Name, Args: string(b.Input)}})
		case b.Type == "tool_result":
			events = append(events, Event{Type: "tool_result", Call: &chat.Call{ID: b.Of}, Text: claudeText(b.Result), IsError: b.Failed})
		}
	}
	return events
}

// claudeText returns the content of a tool's result: a text, or parts with texts.
func claudeText(content jsontext.Value) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var all []string
	for _, p := range parts[:min(len(parts), maxLineEvents)] {
		all = append(all, p.Text)
	}
	return strings.Join(all, "\n")
}
