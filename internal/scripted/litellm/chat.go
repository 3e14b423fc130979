package litellm

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

type problem struct {
	status        int
	kind, message string
}

// authorize finds the virtual key; nil is the master key.
func (s *Server) authorize(key, model string) (*virtualKey, *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[key]
	switch {
	case key == s.options.MasterKey:
		return nil, nil
	case k == nil:
		return nil, &problem{http.StatusUnauthorized, "token_not_found_in_db", "Authentication Error, Invalid proxy server token passed. Received API Key = " + key}
	case time.Now().After(k.expires):
		return nil, &problem{http.StatusUnauthorized, "expired_key", "Authentication Error - Expired Key."}
	case k.maxBudget > 0 && k.spend > k.maxBudget:
		return nil, &problem{http.StatusTooManyRequests, "budget_exceeded", fmt.Sprintf("Budget has been exceeded! Current cost: %v, Max budget: %v", k.spend, k.maxBudget)}
	case model != "" && len(k.models) > 0 && !slices.Contains(k.models, model):
		return nil, &problem{http.StatusUnauthorized, "key_model_access_denied", "key not allowed to access model"}
	}
	return k, nil
}

type chatRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	User     string `json:"user"`
	Messages []struct {
		Content any `json:"content"`
	} `json:"messages"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	var ask chatRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<20)).Decode(&ask); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request_error", err.Error())
		return
	}
	key, trouble := s.authorize(bearer(r), ask.Model)
	model, known := s.options.Models[ask.Model]
	if trouble == nil && !known {
		trouble = &problem{http.StatusBadRequest, "bad_request_error", "Invalid model name passed in model=" + ask.Model}
	}
	s.mu.Lock()
	s.headers = append(s.headers, r.Header.Clone())
	s.mu.Unlock()
	if trouble != nil {
		refuse(w, trouble.status, trouble.kind, trouble.message)
		return
	}
	a := &answer{server: s, request: r, ask: &ask, model: model, key: key, id: "chatcmpl-" + rand.Text(), began: time.Now()}
	a.prompt = max(1, len(fmt.Sprint(ask.Messages))/4)
	if ask.Stream {
		a.stream(w)
		return
	}
	a.whole(w)
}

// answer is one chat completion.
type answer struct {
	server  *Server
	request *http.Request
	ask     *chatRequest
	model   Model
	key     *virtualKey
	id      string
	began   time.Time
	prompt  int
	said    int
}

func (a *answer) text() []string {
	return strings.SplitAfter(cmp.Or(a.model.Answer, "All is well."), " ")
}

func (a *answer) cost() float64 {
	return float64(a.prompt)*a.model.Input + float64(a.said)*a.model.Output
}

func (a *answer) usage() map[string]any {
	return map[string]any{"prompt_tokens": a.prompt, "completion_tokens": a.said, "total_tokens": a.prompt + a.said}
}

func (a *answer) whole(w http.ResponseWriter) {
	a.said = len(a.text())
	w.Header().Set("x-litellm-response-cost", fmt.Sprint(a.cost()))
	w.Header().Set("x-litellm-key-spend", "1.0")
	w.Header().Set("x-litellm-model-api-base", "http://internal.invalid")
	a.log()
	reply(w, map[string]any{"id": a.id, "object": "chat.completion", "model": a.ask.Model, "created": a.began.Unix(), "usage": a.usage(),
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": strings.Join(a.text(), "")}}}})
}

func (a *answer) stream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("x-litellm-key-spend", "1.0")
	flusher, _ := w.(http.Flusher)
	send := func(choices []any, usage any) error {
		event := map[string]any{"id": a.id, "object": "chat.completion.chunk", "model": a.ask.Model, "created": a.began.Unix(), "choices": choices}
		if usage != nil {
			event["usage"] = usage
		}
		text, _ := json.Marshal(event)
		_, err := fmt.Fprintf(w, "data: %s\n\n", text)
		flusher.Flush()
		return err
	}
	defer a.log() // also of what the caller did not wait for
	for _, word := range a.text() {
		a.said++
		if send([]any{map[string]any{"index": 0, "delta": map[string]any{"content": word}}}, nil) != nil || a.request.Context().Err() != nil {
			return
		}
	}
	_ = send([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": "stop"}}, nil)
	if a.ask.StreamOptions.IncludeUsage {
		_ = send([]any{}, a.usage())
	}
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// log writes the row of the answer.
func (a *answer) log() {
	metadata := map[string]any{"litellm_call_id": a.request.Header.Get("x-litellm-call-id")}
	var spend map[string]any
	if json.Unmarshal([]byte(a.request.Header.Get("x-litellm-spend-logs-metadata")), &spend) == nil {
		metadata["spend_logs_metadata"] = spend
	}
	endUser := cmp.Or(a.request.Header.Get("x-litellm-customer-id"), a.request.Header.Get("x-litellm-end-user-id"), a.ask.User)
	row := Row{RequestID: a.id, CallType: "acompletion", APIKey: hashKey(bearer(a.request)), Spend: a.cost(), Model: a.ask.Model, EndUser: endUser, Status: "success",
		PromptTokens: a.prompt, CompletionTokens: a.said, TotalTokens: a.prompt + a.said, Metadata: metadata,
		StartTime: a.began.UTC().Format(time.RFC3339Nano), EndTime: time.Now().UTC().Format(time.RFC3339Nano)}
	s := a.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.key != nil {
		a.key.spend += row.Spend
	}
	if s.options.Late {
		s.waiting = append(s.waiting, row)
		return
	}
	s.written = append(s.written, row)
}
