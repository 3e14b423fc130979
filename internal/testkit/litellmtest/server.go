package litellmtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/fakellm"
)

// Options say how the server behaves.
type Options struct {
	MasterKey string
	Models    map[string]Model
	// Late keeps spend logs back until Flush, as LiteLLM's batches do.
	Late bool
	// Old serves /spend/logs only, as releases without /spend/logs/v2 do.
	Old bool
}

// Model is what one model costs, in dollars for a token, and what it says: its
// script, in every dialect from its beginning, or always the same.
type Model struct {
	Input, Output float64
	Answer        string
	Script        fakellm.Script
}

// Row is one row of the spend logs.
type Row struct {
	RequestID        string         `json:"request_id"`
	CallType         string         `json:"call_type"`
	APIKey           string         `json:"api_key"`
	Spend            float64        `json:"spend"`
	TotalTokens      int            `json:"total_tokens"`
	PromptTokens     int            `json:"prompt_tokens"`
	CompletionTokens int            `json:"completion_tokens"`
	StartTime        string         `json:"startTime"`
	EndTime          string         `json:"endTime"`
	Model            string         `json:"model"`
	EndUser          string         `json:"end_user"`
	Status           string         `json:"status"`
	Metadata         map[string]any `json:"metadata"`
}

// virtualKey is a key that /key/generate made.
type virtualKey struct {
	alias     string
	kind      string
	models    []string
	maxBudget float64
	expires   time.Time
	spend     float64
}

// Server is a LiteLLM that listens.
type Server struct {
	options  Options
	listener net.Listener
	http     *http.Server
	served   chan struct{}

	mu      sync.Mutex
	keys    map[string]*virtualKey
	written []Row
	waiting []Row
	asked   []*fakellm.Request

	players  map[part]*fakellm.Player
	problems []error
}

// Listen starts a server on network "tcp" or "unix".
func Listen(ctx context.Context, network, address string, o Options) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("scripted LiteLLM: %w", err)
	}
	s := &Server{options: o, listener: listener, served: make(chan struct{}), keys: map[string]*virtualKey{}, players: map[part]*fakellm.Player{}}
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 30 * time.Second}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener)
	}()
	return s, nil
}

// URL is the address for clients of a server on TCP, without /v1.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Close ends the server and every answer under way.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.served
	return err
}

// Flush writes the spend logs that were kept back.
func (s *Server) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written, s.waiting = append(s.written, s.waiting...), nil
}

// Rows returns every row, written or not.
func (s *Server) Rows() []Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(append([]Row(nil), s.written...), s.waiting...)
}

// Add writes a row that no request made.
func (s *Server) Add(r Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = append(s.written, r)
}

// Key is a virtual key as its maker asked for it.
type Key struct {
	Alias, Type, Hash string
	Models            []string
	MaxBudget         float64
	Expires           time.Time
}

// Keys returns the virtual keys that there are.
func (s *Server) Keys() (all []Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, k := range s.keys {
		all = append(all, Key{Alias: k.alias, Type: k.kind, Hash: hashKey(key), Models: k.models, MaxBudget: k.maxBudget, Expires: k.expires})
	}
	return all
}

// Requests returns the requests to models so far.
func (s *Server) Requests() []*fakellm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *Server) remember(ask *fakellm.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, ask)
}

// Err tells of requests that no script had an answer to.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.problems...)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/chat/completions", "/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/responses", "/v1/embeddings", "/v1beta/models/{call}"} {
		mux.HandleFunc("POST "+path, s.serve)
	}
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /model/info", s.admin(s.modelInfo))
	mux.HandleFunc("POST /key/generate", s.admin(s.generateKey))
	mux.HandleFunc("POST /key/delete", s.admin(s.deleteKey))
	mux.HandleFunc("GET /spend/logs", s.admin(s.oldLogs))
	if !s.options.Old {
		mux.HandleFunc("GET /spend/logs/v2", s.admin(s.logs))
	}
	mux.HandleFunc("GET /health/liveliness", func(w http.ResponseWriter, _ *http.Request) { reply(w, "I'm alive!") })
	return mux
}

func bearer(r *http.Request) string {
	if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return key
	}
	return r.Header.Get("x-api-key")
}

// admin lets only the master key through.
func (s *Server) admin(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if bearer(r) != s.options.MasterKey {
			refuse(w, http.StatusUnauthorized, "auth_error", "Authentication Error, Invalid proxy server token passed. key="+bearer(r))
			return
		}
		next(w, r)
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": fmt.Sprint(status)}})
}

func hashKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func (s *Server) generateKey(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Alias     string   `json:"key_alias"`
		MaxBudget float64  `json:"max_budget"`
		Duration  string   `json:"duration"`
		Models    []string `json:"models"`
		Type      string   `json:"key_type"`
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request_error", err.Error())
		return
	}
	life, err := time.ParseDuration(ask.Duration)
	if err != nil {
		refuse(w, http.StatusBadRequest, "bad_request_error", "duration: "+err.Error())
		return
	}
	key := "sk-" + rand.Text()
	if !s.addKey(key, &virtualKey{alias: ask.Alias, kind: ask.Type, models: ask.Models, maxBudget: ask.MaxBudget, expires: time.Now().Add(life)}) {
		refuse(w, http.StatusBadRequest, "bad_request_error", "Key with alias '"+ask.Alias+"' already exists.")
		return
	}
	reply(w, map[string]any{"key": key, "key_alias": ask.Alias, "token_id": hashKey(key), "max_budget": ask.MaxBudget, "models": ask.Models})
}

// addKey reports whether the key's alias is new: no two keys have the same.
func (s *Server) addKey(key string, k *virtualKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.keys {
		if other.alias == k.alias {
			return false
		}
	}
	s.keys[key] = k
	return true
}

func (s *Server) deleteKey(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Keys    []string `json:"keys"`
		Aliases []string `json:"key_aliases"`
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request_error", err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	deleted := []string{}
	for key, k := range s.keys {
		for _, named := range append(ask.Keys, ask.Aliases...) {
			if named == key || named == hashKey(key) || named == k.alias {
				delete(s.keys, key)
				deleted = append(deleted, named)
			}
		}
	}
	if len(deleted) == 0 {
		refuse(w, http.StatusNotFound, "not_found_error", "No keys found")
		return
	}
	reply(w, map[string]any{"deleted_keys": deleted})
}

func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	if _, problem := s.authorize(bearer(r), ""); problem != nil {
		refuse(w, problem.status, problem.kind, problem.message)
		return
	}
	data := []map[string]any{}
	for name := range s.options.Models {
		data = append(data, map[string]any{"id": name, "object": "model", "owned_by": "openai"})
	}
	reply(w, map[string]any{"object": "list", "data": data})
}

func (s *Server) modelInfo(w http.ResponseWriter, _ *http.Request) {
	data := []map[string]any{}
	for name, m := range s.options.Models {
		info := map[string]any{"id": hashKey(name)[:12], "input_cost_per_token": nil, "output_cost_per_token": nil}
		if m.Input > 0 || m.Output > 0 {
			info["input_cost_per_token"], info["output_cost_per_token"] = m.Input, m.Output
			info["cache_read_input_token_cost"] = m.Input / 10
		}
		data = append(data, map[string]any{"model_name": name, "litellm_params": map[string]any{"model": "openai/" + name}, "model_info": info})
	}
	reply(w, map[string]any{"data": data})
}
