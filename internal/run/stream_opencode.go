package run

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// opencodeLine is a line of opencode run --format json.
type opencodeLine struct {
	Type    string       `json:"type"` // step_start, text, tool_use, step_finish, error
	Session string       `json:"sessionID"`
	Part    opencodePart `json:"part"`
	Error   struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
		} `json:"data"`
	} `json:"error"`
}

// opencodePart is a part of a message, whole: a tool call comes with its result.
type opencodePart struct {
	Message string  `json:"messageID"`
	Text    string  `json:"text"`
	Tool    string  `json:"tool"`
	Call    string  `json:"callID"`
	Dollars float64 `json:"cost"`
	State   struct {
		Status   string         `json:"status"` // completed or error
		Input    jsontext.Value `json:"input"`
		Output   string         `json:"output"`
		Error    string         `json:"error"`
		Metadata struct {
			Exit *int `json:"exit"`
		} `json:"metadata"`
		Time struct {
			Start float64 `json:"start"` // milliseconds
			End   float64 `json:"end"`
		} `json:"time"`
	} `json:"state"`
	Tokens struct {
		Input     int64 `json:"input"` // without cached ones
		Output    int64 `json:"output"`
		Reasoning int64 `json:"reasoning"`
		Cache     struct {
			Read  int64 `json:"read"`
			Write int64 `json:"write"`
		} `json:"cache"`
	} `json:"tokens"`
}

// opencodeEvents is the streamReader of OpenCode.
func opencodeEvents(line []byte) []Event {
	var m opencodeLine
	if !decodeLine(line, &m) {
		return nil
	}
	switch m.Type {
	case "text":
		return []Event{said(m.Part.Text)}
	case "tool_use":
		return m.Part.toolCall()
	case "step_finish":
		return []Event{m.Part.used()}
	case "error":
		return []Event{logged(m.failure())}
	}
	return nil
}

// toolCall returns the events of a call that has ended.
func (p *opencodePart) toolCall() []Event {
	state := &p.State
	failed := state.Status == "error" || state.Metadata.Exit != nil && *state.Metadata.Exit != 0
	call := &chat.Call{ID: p.Call, Name: p.Tool, Args: string(state.Input)}
	took := min(max(state.Time.End-state.Time.Start, 0), maxTookMs)
	return []Event{
		{Type: "tool_call", Call: call},
		{Type: "tool_result", Call: call, Text: nonempty(state.Output, state.Error), IsError: failed, TookMs: took},
	}
}

// used returns the usage of one step.
func (p *opencodePart) used() Event {
	t := &p.Tokens
	return used(chat.Usage{
		Input: t.Input + t.Cache.Read + t.Cache.Write, Output: t.Output + t.Reasoning, CacheRead: t.Cache.Read, CacheWrite: t.Cache.Write,
	}, p.Dollars)
}

// failure returns what an error says.
func (m *opencodeLine) failure() string {
	return nonempty(nonempty(m.Error.Data.Message, m.Error.Name), "the agent reports a failure")
}

// opencode updates the answer: the texts of the last message that has one.
func (a *streamAnswer) opencode(line []byte) {
	var m opencodeLine
	if !decodeLine(line, &m) || m.Type == "" || m.Session == "" {
		return
	}
	a.known = true
	switch {
	case m.Type == "error":
		a.failure = m.failure()
	case m.Type == "text" && m.Part.Message == a.message && a.text.Len() > 0:
		a.text.WriteString("\n" + m.Part.Text)
	case m.Type == "text":
		a.message = m.Part.Message
		a.begin(m.Part.Text)
	}
}
