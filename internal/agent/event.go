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
	// Call and IsError belong to tools, TookMs to their results and to the end.
	Call    *chat.Call  `json:"call,omitempty"`
	IsError bool        `json:"isError,omitzero"`
	TookMs  float64     `json:"tookMs,omitzero"`
	Usage   *chat.Usage `json:"usage,omitempty"`
	Code    string      `json:"code,omitempty"`
}

// milliseconds is a time as events tell it.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
