package agent

import (
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// EventType names what an event tells.
type EventType string

// The types of events.
const (
	TextDelta   EventType = "text_delta"
	ToolCall    EventType = "tool_call"
	ToolResult  EventType = "tool_result"
	UsageReport EventType = "usage_report"
	Notice      EventType = "notice" // a fallback, a compaction
	Failed      EventType = "error"
	Done        EventType = "done"
)

// Event is something that happened in a run, as it happens.
type Event struct {
	Type  EventType `json:"type"`
	Text  string    `json:"text,omitempty"`
	Model string    `json:"model,omitempty"`
	// Call, IsError and Took belong to tools.
	Call    *chat.Call    `json:"call,omitempty"`
	IsError bool          `json:"isError,omitzero"`
	Took    time.Duration `json:"took,omitzero,format:nano"`
	Usage   *chat.Usage   `json:"usage,omitempty"`
	Code    string        `json:"code,omitempty"`
}
