package ws

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/session"
)

func sendShape() shape {
	return join(
		shape{{name: "sessionKey", kind: word, need: true}, {name: "message", kind: text, need: true}, {name: "idempotencyKey", kind: word, need: true}, {name: "timeoutMs", kind: integer}},
		optional(text, false, "thinking"), optional(flag, false, "deliver"), optional(list, false, "attachments"),
		optional(word, true, "agentId", "sessionId", "replyToId", "expectedSessionRoutingContract"),
		optional(text, true, "queueMode", "originatingChannel", "originatingTo", "originatingAccountId", "originatingThreadId", "systemProvenanceReceipt"),
		optional(anything, true, "mentions", "workContext", "intent", "fastMode", "toolBindings", "systemInputProvenance", "expectedLeafEntryId", "expectedPermissionMode", "expectedToolOverrides"),
		optional(integer, true, "fastAutoOnSeconds"), optional(flag, true, "suppressCommandInterpretation"),
	)
}

// send submits a chat message. The answer arrives as events.
func (c *call) send() (any, error) {
	var p struct {
		Key         string       `json:"sessionKey"`
		Message     string       `json:"message"`
		ID          string       `json:"idempotencyKey"`
		Timeout     int64        `json:"timeoutMs"`
		Agent       string       `json:"agentId"`
		Thinking    string       `json:"thinking"`
		Attachments []attachment `json:"attachments"`
	}
	if err := c.bind(&p); err != nil {
		return nil, err
	}
	if strings.TrimSpace(p.Message) == "" && len(p.Attachments) == 0 {
		return nil, invalid("message or attachment required")
	}
	uploads, err := decodeAttachments(p.Attachments)
	if err != nil {
		return nil, err
	}
	rec, existing, err := c.submit(session.Task{
		ID: p.ID, Key: withAgent(p.Agent, p.Key), Message: p.Message, Uploads: uploads, Terms: session.Terms{Thinking: p.Thinking}, Timeout: time.Duration(min(p.Timeout, maxSeconds)) * time.Millisecond, Origin: c.conn.id,
	}, func(rec *session.Record) { c.out.sendBarrier(response(c.id, c.sendReply(rec, false), nil)) }, nil)
	switch {
	case err != nil:
		return nil, err
	case existing:
		return c.sendReply(rec, true), nil
	}
	return noReply{}, nil
}

// withAgent adds an agent to a key that names none.
func withAgent(agent, key string) string {
	if agent == "" || strings.HasPrefix(strings.ToLower(key), "agent:") {
		return key
	}
	return "agent:" + agent + ":" + key
}

// sendReply returns the state of a task: a repeated message is executed once.
func (c *call) sendReply(rec *session.Record, existing bool) fields {
	f := fields{"runId": rec.ID, "status": "started"}
	switch {
	case existing && !rec.State.Over():
		f["status"] = "in_flight"
	case existing && rec.State == session.Done:
		f["status"] = "ok"
	case existing && rec.State == session.Failed:
		f["status"], f["summary"] = "error", rec.Problem
	case existing:
		f["status"], f["summary"], f["stopReason"], f["endedAt"] = "timeout", "aborted", "rpc", rec.Ended.UnixMilli()
	}
	return f
}

func abortShape() shape {
	return join(shape{{name: "sessionKey", kind: word, need: true}, {name: "runId", kind: word}}, optional(word, true, "agentId"), optional(flag, true, "preserveSideRuns"))
}

// abort aborts one task of a session, or all.
func (c *call) abort() (any, error) {
	var p struct {
		Key   string `json:"sessionKey"`
		ID    string `json:"runId"`
		Agent string `json:"agentId"`
	}
	if err := c.bind(&p); err != nil {
		return nil, err
	}
	ids, err := c.server.Sessions.Abort(c.ctx, c.view(), withAgent(p.Agent, p.Key), p.ID)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return nil, err
	}
	if ids == nil {
		ids = []string{}
	}
	return fields{"ok": true, "aborted": len(ids) > 0, "runIds": ids}, nil
}

func historyShape() shape {
	return join(
		shape{{name: "sessionKey", kind: word, need: true}, {name: "limit", kind: integer, min: 1, max: maxHistory}},
		optional(word, true, "agentId", "messageId", "sessionId"), optional(text, true, "cursor"), optional(list, true, "inputRunIds"),
		shape{{name: "maxBytes", kind: integer, min: 1024, v4: true}, {name: "offset", kind: integer, v4: true}, {name: "pendingBefore", kind: integer, min: 1, v4: true}, {name: "maxChars", kind: integer, min: 1, max: 500_000, v4: true}},
	)
}

// defaultHistory is the number of messages in a history without a limit.
const defaultHistory = 200

// history returns the transcript of a session; that of an unknown session is empty.
func (c *call) history() (any, error) {
	p := struct {
		Key      string `json:"sessionKey"`
		Agent    string `json:"agentId"`
		Limit    int    `json:"limit"`
		Offset   int    `json:"offset"`
		MaxBytes int    `json:"maxBytes"`
	}{Limit: defaultHistory}
	if err := c.bind(&p); err != nil {
		return nil, err
	}
	key := withAgent(p.Agent, p.Key)
	e, err := c.server.Sessions.Get(c.ctx, c.view(), key)
	if errors.Is(err, session.ErrNotFound) {
		return c.historyReply(key, nil, []json.RawMessage{}, false), nil
	}
	if err != nil {
		return nil, err
	}
	// One more than requested shows whether there are more.
	all, err := c.server.Sessions.History(c.ctx, c.view(), key, min(p.Offset+p.Limit+1, maxHistory))
	if err != nil {
		return nil, err
	}
	all = all[:max(0, len(all)-p.Offset)]
	more := len(all) > p.Limit
	all = all[max(0, len(all)-p.Limit):]
	messages, cut := c.render(e, all, p.MaxBytes)
	return c.historyReply(key, e, messages, more || cut), nil
}

// render encodes the last messages that fit into most bytes.
func (c *call) render(e *session.Entry, all []chat.Message, most int) (messages []json.RawMessage, cut bool) {
	limit := c.server.Limits.History
	if most > 0 {
		limit = min(limit, most)
	}
	messages = make([]json.RawMessage, len(all))
	for i := len(all) - 1; i >= 0; i-- {
		data, err := json.Marshal(clientMessage(e, &all[i]))
		if limit -= len(data); err != nil || limit < 0 {
			return messages[i+1:], true
		}
		messages[i] = data
	}
	return messages, false
}

// clientMessage converts a message to the form of the protocol.
func clientMessage(e *session.Entry, m *chat.Message) fields {
	content := []fields{}
	if m.Text != "" {
		content = append(content, fields{"type": "text", "text": m.Text})
	}
	for _, call := range m.Calls {
		content = append(content, fields{"type": "toolCall", "id": call.ID, "name": call.Name, "arguments": arguments(call.Args)})
	}
	f := fields{"role": string(m.Role), "content": content, "timestamp": e.Updated.UnixMilli()}
	switch m.Role {
	case chat.Tool:
		f["role"], f["toolCallId"], f["isError"] = "toolResult", m.CallID, m.IsError
	case chat.Assistant:
		f["provider"], f["model"], _ = strings.Cut(e.LastModel, "/")
		f["api"], f["stopReason"] = "openai-completions", "stop"
	case chat.User:
	}
	return f
}

func (c *call) historyReply(key string, e *session.Entry, messages []json.RawMessage, more bool) fields {
	f := fields{"sessionKey": key, "messages": messages}
	level := "off"
	if e != nil {
		f["sessionKey"], f["sessionId"] = e.Key, e.ID
		if l := e.Levels["thinkingLevel"]; l != "" {
			level = l
		}
	}
	if c.version < protocol.V4 {
		f["thinkingLevel"] = level
		return f
	}
	f["pendingInputs"] = fields{"items": []any{}, "total": 0}
	f["hasMore"], f["totalMessages"], f["defaults"] = more, len(messages), c.defaults()
	if more {
		f["nextOffset"] = len(messages)
	}
	if e != nil {
		f["sessionInfo"] = c.row(e)
	}
	return f
}
