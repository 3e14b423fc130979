package run

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/agent/envelope"
)

// Streams that programs print on standard output, a JSON object a line.
const (
	claudeStream = "claude"
	codexStream  = "codex"
)

// maxLineEvents bounds what one line of a program can tell.
const maxLineEvents = 64

// streamOf reads the lines of a stream; nil if there is no such stream. A line
// that cannot be read tells nothing.
func streamOf(name string) func(line []byte) []Event {
	switch name {
	case claudeStream:
		return claudeLine
	case codexStream:
		return codexLine
	}
	return nil
}

// claudeMessage is a line of claude --output-format stream-json, as far as it
// tells what happens.
type claudeMessage struct {
	Type    string `json:"type"`
	Message struct {
		Content jsontext.Value `json:"content"`
	} `json:"message"`
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

func claudeLine(line []byte) (events []Event) {
	var m claudeMessage
	if !isObject(line) || json.Unmarshal(line, &m) != nil || m.Type != "assistant" && m.Type != "user" {
		return nil
	}
	var blocks []claudeBlock
	if json.Unmarshal(m.Message.Content, &blocks) != nil {
		return nil
	}
	for i := range blocks[:min(len(blocks), maxLineEvents)] {
		b := &blocks[i]
		switch {
		case b.Type == "text" && m.Type == "assistant":
			events = append(events, Event{Type: "text_delta", Text: b.Text + "\n"})
		case b.Type == "tool_use":
			events = append(events, Event{Type: "tool_call", Call: &chat.Call{ID: b.ID, Name: b.Name, Args: string(b.Input)}})
		case b.Type == "tool_result":
			events = append(events, Event{Type: "tool_result", Call: &chat.Call{ID: b.Of}, Text: claudeText(b.Result), IsError: b.Failed})
		}
	}
	return events
}

// claudeText is the content of a tool's result: a text, or parts with texts.
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

// codexMessage is a line of codex exec --json.
type codexMessage struct {
	Type    string    `json:"type"`
	Item    codexItem `json:"item"`
	Message string    `json:"message"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
}

type codexItem struct {
	ID      string         `json:"id"`
	Type    string         `json:"type"`
	Text    string         `json:"text"`
	Command string         `json:"command"`
	Output  string         `json:"aggregated_output"`
	Exit    *int           `json:"exit_code"`
	Status  string         `json:"status"`
	Changes jsontext.Value `json:"changes"`
	Server  string         `json:"server"`
	Tool    string         `json:"tool"`
}

func codexLine(line []byte) []Event {
	var m codexMessage
	if !isObject(line) || json.Unmarshal(line, &m) != nil {
		return nil
	}
	i, done := &m.Item, m.Type == "item.completed"
	if i.Type == "agent_message" && done {
		return []Event{{Type: "text_delta", Text: i.Text + "\n"}}
	}
	call := i.call()
	switch {
	case call == nil:
		return nil
	case done:
		return []Event{{Type: "tool_result", Call: call, Text: i.Output, IsError: i.Status == "failed" || i.Exit != nil && *i.Exit != 0}}
	case m.Type == "item.started":
		return []Event{{Type: "tool_call", Call: call}}
	}
	return nil
}

// call is what an item does; nil if it is no call of a tool.
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

// readCodex finds the answer in what codex exec --json printed, or takes what was
// printed for it where that has no such lines.
func readCodex(c Custom, r *Result) (*envelope.Envelope, error) {
	answer, failure, found := "", "", false
	for line := range strings.Lines(string(r.Stdout)) {
		var m codexMessage
		if !isObject([]byte(line)) || json.Unmarshal([]byte(line), &m) != nil || m.Type == "" {
			continue
		}
		found = true
		switch {
		case m.Type == "item.completed" && m.Item.Type == "agent_message":
			answer, failure = m.Item.Text, ""
		case m.Type == "turn.failed":
			failure = nonempty(m.Error.Message, "the turn failed")
		case m.Type == "error":
			failure = nonempty(m.Message, "the agent reports a failure")
		}
	}
	if !found {
		return c.readText(r)
	}
	if failure == "" && answer == "" {
		return nil, envelope.ErrNone
	}
	e := answerOf(answer)
	if failure != "" {
		e.Meta.Error = &envelope.Error{Kind: "agent_error", Message: failure}
	}
	return e, nil
}

func isObject(line []byte) bool { return len(line) > 0 && line[0] == '{' }
