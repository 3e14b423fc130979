package fakellm

import (
	"fmt"
	"maps"
)

// object is a JSON object.
type object = map[string]any

// responseOf is a Responses answer that has this output so far.
func responseOf(r *Request, status string, output []object) object {
	return object{
		"id": fmt.Sprintf("resp_%d", r.answers(false)+1), "object": "response", "created_at": created, "model": r.Model,
		"status": status, "output": output, "parallel_tool_calls": true, "tools": []any{}, "usage": nil, "error": nil,
	}
}

func responseUsage(u Usage) object {
	return object{
		"input_tokens": u.Prompt, "input_tokens_details": object{"cached_tokens": u.Cached},
		"output_tokens": u.Completion, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": u.Prompt + u.Completion,
	}
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}}
}

// spoken and called are the two kinds of output.
func spoken(r *Request, text string) object {
	return object{
		"type": "message", "id": fmt.Sprintf("msg_%d", r.answers(false)+1), "role": "assistant", "status": "completed",
		"content": []object{outputText(text)},
	}
}

func called(c Call) object {
	call := object{"type": "function_call", "id": "fc_" + c.ID, "call_id": c.ID, "name": c.Name, "arguments": c.Arguments, "status": "completed"}
	if c.Namespace != "" {
		call["namespace"] = c.Namespace
	}
	return call
}

func wholeResponse(r *Request, t Turn) object {
	output := []object{}
	if t.Text != "" || len(t.Calls) == 0 {
		output = append(output, spoken(r, t.Text))
	}
	for _, c := range t.Calls {
		output = append(output, called(c))
	}
	response := responseOf(r, "completed", output)
	response["usage"] = responseUsage(r.Usage(t))
	return response
}

// responseStream numbers its events.
type responseStream struct {
	*events
	request *Request
	output  int // the item that is being sent
}

func (s *responseStream) say(kind string, more object) {
	more["type"], more["sequence_number"] = kind, s.sent
	s.send(kind, more)
}

func streamResponse(e *events, r *Request, t Turn) {
	s := &responseStream{events: e, request: r}
	s.say("response.created", object{"response": responseOf(r, "in_progress", []object{})})
	s.say("response.in_progress", object{"response": responseOf(r, "in_progress", []object{})})
	if t.Text != "" || len(t.Calls) == 0 {
		s.words(t.Text)
	}
	for _, c := range t.Calls {
		s.call(c)
	}
	s.say("response.completed", object{"response": wholeResponse(r, t)})
}

// item sends an item as a beginning, what between sends, and the whole.
func (s *responseStream) item(whole, beginning object, between func(at object)) {
	begun := maps.Clone(whole)
	maps.Copy(begun, beginning)
	begun["status"] = "in_progress"
	s.say("response.output_item.added", object{"output_index": s.output, "item": begun})
	between(object{"output_index": s.output, "item_id": whole["id"]})
	s.say("response.output_item.done", object{"output_index": s.output, "item": whole})
	s.output++
}

func (s *responseStream) words(text string) {
	s.item(spoken(s.request, text), object{"content": []any{}}, func(at object) {
		at["content_index"] = 0
		s.say("response.content_part.added", with(at, "part", outputText("")))
		for _, piece := range cut(text) {
			s.say("response.output_text.delta", with(at, "delta", piece))
		}
		s.say("response.output_text.done", with(at, "text", text))
		s.say("response.content_part.done", with(at, "part", outputText(text)))
	})
}

func (s *responseStream) call(c Call) {
	s.item(called(c), object{"arguments": ""}, func(at object) {
		for _, piece := range cut(c.Arguments) {
			s.say("response.function_call_arguments.delta", with(at, "delta", piece))
		}
		s.say("response.function_call_arguments.done", with(at, "arguments", c.Arguments))
	})
}

// with is an object with one member more.
func with(o object, name string, value any) object {
	o = maps.Clone(o)
	o[name] = value
	return o
}
