package ws

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/session"
)

// fields are the members of a payload.
type fields map[string]any

// agentEvent is an event of the stream "agent" in both versions; nil means that a
// version does not have it.
func agentEvent(e *session.Event, seq int64, stream string, v3, v4 fields) encodedEvent {
	return inBoth("agent", e, v3, v4, func(data fields) fields {
		return fields{"runId": e.Task, "stream": stream, "data": data, "sessionKey": e.Key, "seq": seq, "ts": e.At.UnixMilli()}
	})
}

// chatEvent is an event of the chat in both versions.
func chatEvent(e *session.Event, seq int64, state string, v3, v4 fields) encodedEvent {
	return inBoth("chat", e, v3, v4, func(more fields) fields {
		p := fields{"runId": e.Task, "sessionKey": e.Key, "seq": seq, "state": state}
		maps.Copy(p, more)
		return p
	})
}

// inBoth builds the payload for each version that has one. Version 4 names the
// agent in all of them.
func inBoth(name string, e *session.Event, v3, v4 fields, payload func(fields) fields) encodedEvent {
	var old, current any
	if v3 != nil {
		old = payload(v3)
	}
	if v4 != nil {
		p := payload(v4)
		p["agentId"] = e.Agent
		current = p
	}
	return at(e, newEvent(name, old, current))
}

// at sets when an event was published.
func at(e *session.Event, t encodedEvent) encodedEvent {
	t.at = e.At
	return t
}

func changed(e *session.Event, reason string) encodedEvent {
	return at(e, newEvent("sessions.changed", nil, fields{"sessionKey": e.Key, "agentId": e.Agent, "reason": reason, "ts": e.At.UnixMilli()}))
}

// start encodes that a task has started.
func (n *eventEncoder) start(e *session.Event) []encodedEvent {
	t := n.turn(e)
	t.started = e.At.UnixMilli()
	t.seq++
	data := fields{"phase": "start", "startedAt": t.started}
	frames := []encodedEvent{agentEvent(e, t.seq, "lifecycle", data, data)}
	status := fields{"phase": "starting_model"}
	frames = append(frames, chatEvent(e, t.seq, "status", nil, status))
	if provider, model, ok := strings.Cut(e.Model, "/"); ok {
		t.seq++
		frames = append(frames, agentEvent(e, t.seq, "lifecycle", nil, fields{"phase": "model", "provider": provider, "model": model}))
	}
	return frames
}

// Every text frame has the whole text so far. Beyond smooth bytes frames are sent
// less often, or a long answer would be sent thousands of times.
const (
	smooth = 8 << 10
	pause  = 50 * time.Millisecond
)

// say encodes text of a model, to the chat no more often than Throttle.
func (n *eventEncoder) say(e *session.Event) (frames []encodedEvent) {
	t := n.turn(e)
	t.text = e.Text
	t.pending += e.Delta
	if len(t.text) <= smooth || e.At.Sub(t.sentAt) >= pause {
		frames = t.flush(e)
	}
	if e.At.Sub(t.lastDeltaAt) >= n.server.Limits.Throttle {
		t.lastDeltaAt = e.At
		frames = append(frames, t.delta(e, true))
	}
	return frames
}

// flush encodes text that was not sent yet.
func (t *turn) flush(e *session.Event) []encodedEvent {
	if t.pending == "" {
		return nil
	}
	t.seq++
	data := fields{"text": t.text, "delta": t.pending}
	t.pending, t.sentAt = "", e.At
	return []encodedEvent{agentEvent(e, t.seq, "assistant", data, data)}
}

// delta encodes the text since the last chat delta. A text that does not continue
// it is a new message, which replaces.
func (t *turn) delta(e *session.Event, both bool) encodedEvent {
	v4 := fields{"message": message(e, t.text)}
	if rest, ok := strings.CutPrefix(t.text, t.lastDelta); ok {
		v4["deltaText"] = rest
	} else {
		v4["deltaText"], v4["replace"] = t.text, true
	}
	t.lastDelta = t.text
	var v3 fields
	if both {
		v3 = fields{"message": message(e, t.text)}
	}
	return chatEvent(e, t.seq, "delta", v3, v4)
}

func message(e *session.Event, text string) fields {
	return fields{"role": "assistant", "content": []fields{{"type": "text", "text": text}}, "timestamp": e.At.UnixMilli()}
}

// used encodes the tokens of a model's answer.
func (n *eventEncoder) used(e *session.Event) []encodedEvent {
	if e.Usage == nil {
		return nil
	}
	t := n.turn(e)
	frames := t.flush(e)
	t.seq++
	return append(frames, agentEvent(e, t.seq, "usage", nil, fields{"outputTokens": e.Usage.Output}))
}

// maxResult bounds the tool result in an event; the transcript has all of it.
const maxResult = 64 << 10

// tool encodes the start or end of a tool call. Its output is included if the
// session's verboseLevel is full.
func (n *eventEncoder) tool(e *session.Event) encodedEvent {
	t := n.turn(e)
	t.seq++
	data := fields{"phase": "start"}
	if e.Kind == session.Returned {
		data = fields{"phase": "result", "isError": e.IsError}
	}
	if e.Call != nil {
		data["name"], data["toolCallId"] = e.Call.Name, e.Call.ID
		if e.Kind == session.Called {
			data["args"] = arguments(e.Call.Args)
		}
	}
	if e.Kind == session.Returned && e.Verbose == "full" {
		data["result"] = fields{"content": []fields{{"type": "text", "text": clip(e.Result, maxResult)}}}
	}
	return agentEvent(e, t.seq, "tool", data, data)
}

// arguments returns the arguments of a call, as an object if they are one.
func arguments(text string) any {
	if strings.HasPrefix(strings.TrimSpace(text), "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return fields{"text": text}
}

// end encodes the end of a task.
func (n *eventEncoder) end(e *session.Event) []encodedEvent {
	t := n.turn(e)
	frames := t.flush(e)
	t.seq++
	r := e.Record
	if r == nil {
		r = &session.Record{State: session.Done, Text: e.Text}
	}
	switch r.State {
	case session.Failed:
		return append(frames, t.failed(e, r)...)
	case session.Aborted:
		return append(frames, t.aborted(e)...)
	default:
		return append(frames, t.done(e, r)...)
	}
}

func (t *turn) done(e *session.Event, r *session.Record) (frames []encodedEvent) {
	v3, v4 := fields{"phase": "end", "endedAt": e.At.UnixMilli()}, ending(r, t.started, e.At.UnixMilli())
	v4["phase"], v4["aborted"], v4["executionSettled"] = "end", false, true
	frames = append(frames, agentEvent(e, t.seq, "lifecycle", v3, v4))
	if t.text != t.lastDelta {
		frames = append(frames, t.delta(e, false))
	}
	text := r.Text
	old, current := fields{}, fields{"stopReason": "stop"}
	if text != "" { // an empty answer has no message
		old["message"], current["message"] = message(e, text), message(e, text)
	}
	return append(frames, chatEvent(e, t.seq, "final", old, current))
}

func (t *turn) failed(e *session.Event, r *session.Record) []encodedEvent {
	data := fields{"phase": "error", "error": r.Problem, "endedAt": e.At.UnixMilli()}
	v4 := fields{"errorMessage": r.Problem, "errorKind": kindOf(r.Code)}
	return []encodedEvent{agentEvent(e, t.seq, "lifecycle", data, data), chatEvent(e, t.seq, "error", fields{"errorMessage": r.Problem}, v4)}
}

// kindOf returns version 4's word for an error code.
func kindOf(code string) string {
	if code == session.CodeTimeout {
		return "timeout"
	}
	return "unknown"
}

func (t *turn) aborted(e *session.Event) []encodedEvent {
	old, current := fields{"stopReason": "rpc"}, fields{"stopReason": "rpc"}
	if text := t.text; text != "" {
		old["message"], current["message"] = message(e, text), message(e, text)
	}
	v3 := fields{"phase": "end", "endedAt": e.At.UnixMilli(), "aborted": true}
	v4 := fields{"phase": "end", "status": "cancelled", "aborted": true, "stopReason": "rpc", "startedAt": t.started, "endedAt": e.At.UnixMilli()}
	return []encodedEvent{chatEvent(e, t.seq, "aborted", old, current), agentEvent(e, t.seq, "lifecycle", v3, v4)}
}

// ending is version 4's description of a task that is over.
func ending(r *session.Record, started, ended int64) fields {
	disposition := "visible"
	if r.Text == "" {
		disposition = "silent"
	}
	provider, model, _ := strings.Cut(r.Model, "/")
	used := fields{"provider": provider, "model": model}
	return fields{
		"startedAt": started, "endedAt": ended, "stopReason": "stop", "livenessState": "working",
		"terminalReply": fields{"disposition": disposition, "text": r.Text},
		"terminalReceipt": fields{
			"runId": r.ID, "sessionId": r.Session, "turnId": r.ID, "requested": used,
			"effective": fields{"provider": provider, "model": model, "responseModel": model}, "successfulToolNames": []string{},
			"rerouted": false, "terminalDisposition": disposition,
		},
	}
}
