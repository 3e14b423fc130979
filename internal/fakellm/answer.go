package fakellm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Answer writes a turn as the request wants it: in its dialect, whole or as a
// stream.
func (r *Request) Answer(w http.ResponseWriter, t Turn) {
	for name, value := range t.Header {
		w.Header().Set(name, value)
	}
	switch {
	case t.Status != 0:
		r.Refuse(w, t.Status, "scripted", t.Text)
	case r.Dialect == Vectors:
		reply(w, r.vectors())
	case r.Counts && r.Dialect == Gemini:
		reply(w, map[string]int{"totalTokens": r.Usage(t).Prompt})
	case r.Counts:
		reply(w, map[string]int{"input_tokens": r.Usage(t).Prompt})
	case r.Stream:
		r.stream(newEvents(w, t), t)
	default:
		reply(w, r.whole(t))
	}
}

func (r *Request) whole(t Turn) any {
	switch r.Dialect {
	case Messages:
		return wholeMessage(r, t)
	case Responses:
		return wholeResponse(r, t)
	case Gemini:
		return wholeGenerated(r, t)
	}
	return wholeChat(r, t)
}

func (r *Request) stream(e *events, t Turn) {
	switch r.Dialect {
	case Messages:
		streamMessage(e, r, t)
	case Responses:
		streamResponse(e, r, t)
	case Gemini:
		streamGenerated(e, r, t)
	default:
		streamChat(e, r, t)
	}
}

// Usage is what a turn costs: what it says itself, else an estimate.
func (r *Request) Usage(t Turn) Usage {
	if r.Dialect == Vectors {
		return Usage{Prompt: wordsOf(r.Texts) + 1}
	}
	if t.Usage != (Usage{}) {
		return t.Usage
	}
	return Usage{Prompt: len(r.Body)/4 + 1, Completion: len(t.Text)/4 + 1}
}

// Refuse answers with an error in the dialect of the request.
func (r *Request) Refuse(w http.ResponseWriter, status int, kind, message string) {
	var body any
	switch r.Dialect {
	case Messages:
		body = map[string]any{"type": "error", "error": map[string]any{"type": messageErrors(status), "message": message}}
	case Gemini:
		body = object{"error": object{"code": status, "message": message, "status": strings.ToUpper(kind)}}
	default:
		body = map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": fmt.Sprint(status)}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// events is a stream of server-sent events.
type events struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	turn  Turn
	sent  int
}

func newEvents(w http.ResponseWriter, t Turn) *events {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	return &events{w: w, flush: http.NewResponseController(w), turn: t}
}

// send sends an event, with its name where the dialect has one.
func (e *events) send(name string, body any) {
	if e.turn.Pace != nil {
		<-e.turn.Pace
	}
	data, _ := json.Marshal(body)
	if name != "" {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	fmt.Fprintf(e.w, "data: %s\n\n", data)
	_ = e.flush.Flush()
	if e.sent++; e.sent == e.turn.Cut {
		panic(http.ErrAbortHandler) // how a handler breaks its connection
	}
	if e.turn.Hold != nil && e.sent == e.turn.HoldAfter {
		<-e.turn.Hold
	}
}

// pieces is in how many parts a streamed text or argument comes.
const pieces = 3

// parts are what a streamed text comes in.
func (t *Turn) parts() []string { return cutInto(t.Text, cmp.Or(t.Pieces, pieces)) }

// cut divides a text between characters.
func cut(text string) []string { return cutInto(text, pieces) }

func cutInto(text string, n int) (parts []string) {
	runes := []rune(text)
	size := len(runes)/n + 1
	for len(runes) > 0 {
		n := min(size, len(runes))
		parts = append(parts, string(runes[:n]))
		runes = runes[n:]
	}
	return parts
}
