// Package protocol implements the frames, error codes and limits of OpenClaw's
// gateway protocol, versions 3 and 4, over WebSocket. The gateway uses its server
// side; its client side drives OpenClaw gateways.
//
// It does not implement methods, sessions or tokens.
package protocol

import "encoding/json"

// The versions of the protocol.
const (
	V3 = 3 // OpenClaw 2026.2
	V4 = 4 // OpenClaw 2026.9
)

// DefaultPort is the port of gateways.
const DefaultPort = 18789

// Limits that a server announces and enforces.
const (
	MaxPayload      = 26_214_400 // of one frame, after authentication
	MaxEarlyPayload = 64 << 10   // of the first frame
	MaxBuffered     = 52_428_800 // not yet read by a slow consumer
)

// Frame types.
const (
	TypeRequest  = "req"
	TypeResponse = "res"
	TypeEvent    = "event"
)

// Request calls a method.
type Request struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
	// TraceParent and Profile exist in version 4 only.
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

// Event is sent without a request.
type Event struct {
	Type    string          `json:"type"`
	Event   string          `json:"event"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Seq     int64           `json:"seq,omitzero"` // absent if it was sent to one connection only
	State   *StateVersion   `json:"stateVersion,omitempty"`
}

// StateVersion counts changes of the state that clients keep copies of.
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

// Error codes. The last two exist in version 4 only.
const (
	CodeNotLinked        = "NOT_LINKED"
	CodeNotPaired        = "NOT_PAIRED"
	CodeAgentTimeout     = "AGENT_TIMEOUT"
	CodeInvalidRequest   = "INVALID_REQUEST"
	CodeUnavailable      = "UNAVAILABLE"
	CodeForbidden        = "FORBIDDEN"
	CodeApprovalNotFound = "APPROVAL_NOT_FOUND"
)

// Close codes.
const (
	CloseNormal   = 1000
	CloseProtocol = 1002 // no common version
	ClosePolicy   = 1008 // authentication failed, or a slow consumer
	CloseTooBig   = 1009
	CloseRestart  = 1012
	CloseTryLater = 1013 // no memory for a message
)
