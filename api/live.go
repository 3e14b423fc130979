package api

import "encoding/json"

// What a client of the WebSocket at /api/v1/live sends.
const (
	LiveLogIn       = "login" // the first message of a page whose cookie alone came with the request
	LiveSubscribe   = "subscribe"
	LiveUnsubscribe = "unsubscribe"
)

// What it receives.
const (
	LiveReady    = "ready"    // the caller is known
	LiveSnapshot = "snapshot" // all rows of a topic; what was received before is void
	LiveDelta    = "delta"    // rows that changed or are gone, and new events
	LiveProblem  = "problem"  // of a topic, which is not subscribed to
)

// LiveRequest is a text message of a client. Topics are runs, run:ID, sandboxes, usage,
// approvals, browsers, sessions, session:KEY, cost and health.
type LiveRequest struct {
	Type  string `json:"type" enum:"login|subscribe|unsubscribe"`
	Page  string `json:"page,omitempty" doc:"Of login: the page's half of the log-in."`
	Topic string `json:"topic,omitempty"`
	Since int64  `json:"since,omitzero" doc:"Of subscribe: the last seq that the client has of the topic; a snapshot follows if what came after it is gone."`
}

// LiveMessage is a text message to a client. Keys and rows belong together by their
// place; a row is what the HTTP interface shows: a Run, a Sandbox, a SandboxUsage, an
// Approval, a Browser, a Session, an AccountCost, a LiveHealth or LiveCounts.
type LiveMessage struct {
	Type    string            `json:"type" enum:"ready|snapshot|delta|problem"`
	Topic   string            `json:"topic,omitempty"`
	Seq     int64             `json:"seq,omitzero" doc:"Grows with every message of the topic. Of run:ID the number of the last event."`
	Keys    []string          `json:"keys,omitempty"`
	Rows    []json.RawMessage `json:"rows,omitempty"`
	Removed []string          `json:"removed,omitempty" doc:"Keys of rows that are gone."`
	Events  []Event           `json:"events,omitempty" doc:"Of run:ID and session:KEY."`
	Problem *Problem          `json:"problem,omitempty"`
}

// SandboxUsage is what a running sandbox uses.
type SandboxUsage struct {
	CPU       float64 `json:"cpu" doc:"CPUs, over the last second."`
	Memory    int64   `json:"memory" doc:"Bytes."`
	Processes int64   `json:"processes"`
}

// LiveCounts is how many sandboxes there are that the caller sees.
type LiveCounts struct {
	Sandboxes int `json:"sandboxes"`
	Running   int `json:"running"`
}

// LiveHealth is whether the gateway can do its work.
type LiveHealth struct {
	Ready   bool   `json:"ready"`
	Detail  string `json:"detail,omitempty" doc:"Why not, for callers of every account."`
	Version string `json:"version"`
}
