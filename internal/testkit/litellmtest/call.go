package litellmtest

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/fakellm"
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

// call is one request to a model and its answer.
type call struct {
	server  *Server
	ask     *fakellm.Request
	model   Model
	key     *virtualKey
	keyHash string
	turn    fakellm.Turn
	id      string
	began   time.Time
}

// serve answers a request to a model, in any dialect.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	ask, err := fakellm.Read(w, r)
	if err != nil {
		refuse(w, http.StatusBadRequest, "bad_request_error", err.Error())
		return
	}
	key, trouble := s.authorize(bearer(r), ask.Model)
	model, known := s.options.Models[ask.Model]
	if trouble == nil && !known {
		trouble = &problem{http.StatusBadRequest, "bad_request_error", "Invalid model name passed in model=" + ask.Model}
	}
	s.remember(ask)
	if trouble != nil {
		refuse(w, trouble.status, trouble.kind, trouble.message)
		return
	}
	c := &call{server: s, ask: ask, model: model, key: key, keyHash: hashKey(bearer(r)), id: "chatcmpl-" + rand.Text(), began: time.Now()}
	if c.turn, err = s.next(ask, model); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request_error", err.Error())
		return
	}
	c.answer(w)
}

// part is a script that is being played: a model's, in one dialect.
type part struct {
	model   string
	dialect fakellm.Dialect
}

// next is what the model says: its script, or always the same.
func (s *Server) next(ask *fakellm.Request, model Model) (fakellm.Turn, error) {
	if ask.Dialect == fakellm.Vectors {
		return fakellm.Turn{}, nil
	}
	if model.Script == nil {
		words := cmp.Or(model.Answer, "All is well.")
		prompt := max(1, len(fmt.Sprint(ask.Messages))/4)
		return fakellm.Turn{Text: words, Usage: fakellm.Usage{Prompt: prompt, Completion: len(strings.Fields(words))}}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	who := part{ask.Model, ask.Dialect}
	if s.players[who] == nil {
		s.players[who] = &fakellm.Player{Script: model.Script}
	}
	turn, err := s.players[who].Next(ask)
	if err != nil {
		s.problems = append(s.problems, err)
	}
	return turn, err
}

func (c *call) answer(w http.ResponseWriter) {
	if c.ask.Counts {
		c.ask.Answer(w, c.turn)
		return
	}
	if !c.ask.Stream {
		w.Header().Set("x-litellm-response-cost", fmt.Sprint(c.cost()))
		w.Header().Set("x-litellm-model-api-base", "http://internal.invalid")
	}
	w.Header().Set("x-litellm-key-spend", "1.0")
	if !c.ask.Stream {
		c.log() // before anybody can ask for it
	} else {
		defer c.log() // also of what the caller did not wait for
	}
	c.ask.Answer(w, c.turn)
}

func (c *call) cost() float64 {
	if c.turn.Status != 0 {
		return 0
	}
	u := c.ask.Usage(c.turn)
	return float64(u.Prompt)*c.model.Input + float64(u.Completion)*c.model.Output
}

// log writes the row of the call.
func (c *call) log() {
	row := Row{
		RequestID: c.id, CallType: callTypes[c.ask.Dialect], APIKey: c.keyHash, Spend: c.cost(), Model: c.ask.Model, EndUser: c.endUser(), Status: "failure",
		Metadata: c.metadata(), StartTime: c.began.UTC().Format(time.RFC3339Nano), EndTime: time.Now().UTC().Format(time.RFC3339Nano),
	}
	if c.turn.Status == 0 {
		u := c.ask.Usage(c.turn)
		row.Status, row.PromptTokens, row.CompletionTokens, row.TotalTokens = "success", u.Prompt, u.Completion, u.Prompt+u.Completion
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.key != nil {
		c.key.spend += row.Spend
	}
	if s.options.Late {
		s.waiting = append(s.waiting, row)
		return
	}
	s.written = append(s.written, row)
}

// callTypes are LiteLLM's names of the dialects.
var callTypes = map[fakellm.Dialect]string{fakellm.Chat: "acompletion", fakellm.Messages: "anthropic_messages", fakellm.Responses: "aresponses", fakellm.Vectors: "aembedding", fakellm.Gemini: "agenerate_content"}

func (c *call) metadata() map[string]any {
	metadata := map[string]any{"litellm_call_id": c.ask.Header.Get("x-litellm-call-id")}
	var spend map[string]any
	if json.Unmarshal([]byte(c.ask.Header.Get("x-litellm-spend-logs-metadata")), &spend) == nil {
		metadata["spend_logs_metadata"] = spend
	}
	return metadata
}

// endUser is whom a call is billed to: the first of these that says anything.
func (c *call) endUser() string {
	var body struct {
		User     string `json:"user"`
		Metadata struct {
			UserID string `json:"user_id"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(c.ask.Body, &body)
	h := c.ask.Header
	return cmp.Or(h.Get("x-litellm-customer-id"), h.Get("x-litellm-end-user-id"), body.User, body.Metadata.UserID)
}
