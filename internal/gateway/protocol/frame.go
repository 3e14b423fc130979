// Package protocol is the language of OpenClaw's gateway, versions 3 and 4: frames,
// error codes and limits, spoken over a WebSocket. Both sides use it: our gateway,
// and our client of gateways that are not ours.
//
// It knows how things are said, not what they mean: methods, sessions and tokens
// belong to those who speak.
package protocol

import "encoding/json"

// The versions of the protocol.
const (
	V3 = 3 // OpenClaw 2026.2
	V4 = 4 // OpenClaw 2026.9
)

// DefaultPort is where gateways listen.
const DefaultPort = 18789

// Limits that a server announces, and keeps.
const (
	MaxPayload      = 26_214_400 // of one frame, once the caller is known
	MaxEarlyPayload = 64 << 10   // of the first frame
	MaxBuffered     = 52_428_800 // not yet read by a slow consumer
)

// Frame types.
const (
	TypeRequest  = "req"
	TypeResponse = "res"
	TypeEvent    = "event"
)

// Request asks for a method.
type Request struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	// TraceParent and Profile are of version 4.
	TraceParent string `json:"traceparent,omitempty"`
	Profile     string `json:"expectedProfileId,omitempty"`
}

// Response answers a request. There may be two for one request.
type Response struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	OK      bool            `json:"ok"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// Event tells something that nobody asked for.
type Event struct {
	Type    string          `json:"type"`
	Event   string          `json:"event"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Seq     int64           `json:"seq,omitzero"` // absent if it was for one connection alone
	State   *StateVersion   `json:"stateVersion,omitempty"`
}

// StateVersion counts what clients keep copies of.
type StateVersion struct {
	Presence int64 `json:"presence"`
	Health   int64 `json:"health"`
}

// Error is why a request failed.
type Error struct {
	Code         string          `json:"code"`
	Message      string          `json:"message"`
	Details      json.RawMessage `json:"details,omitempty"`
	Retryable    bool            `json:"retryable,omitzero"`
	RetryAfterMs int64           `json:"retryAfterMs,omitzero"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Codes of errors. The last two are of version 4.
const (
	CodeNotLinked        = "NOT_LINKED"
	CodeNotPaired        = "NOT_PAIRED"
	CodeAgentTimeout     = "AGENT_TIMEOUT"
	CodeInvalidRequest   = "INVALID_REQUEST"
	CodeUnavailable      = "UNAVAILABLE"
	CodeForbidden        = "FORBIDDEN"
	CodeApprovalNotFound = "APPROVAL_NOT_FOUND"
)

// Codes that a connection is closed with.
const (
	CloseNormal   = 1000
	CloseProtocol = 1002 // the versions do not meet
	ClosePolicy   = 1008 // who is calling, or how much they leave unread
	CloseTooBig   = 1009
	CloseRestart  = 1012
	CloseTryLater = 1013 // too much is arriving at once
)
