package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBody bounds what one request may hold.
const maxBody = 64 << 20

// Server is a model that listens.
type Server struct {
	// Anew begins the script again with every message of the user.
	Anew bool

	listener net.Listener
	http     *http.Server
	served   chan struct{}

	mu       sync.Mutex
	script   Script
	requests []*Request
	problems []error
}

// Listen starts a model on network "tcp" (an address such as "127.0.0.1:0") or
// "unix" (a path).
func Listen(ctx context.Context, network, address string, script Script) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("scripted model: %w", err)
	}
	s := &Server{listener: listener, script: script, served: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener)
	}()
	return s, nil
}

// Addr is where the model listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// BaseURL is the address for clients of a model on TCP, "/v1" included.
func (s *Server) BaseURL() string { return "http://" + s.listener.Addr().String() + "/v1" }

// Close ends the model and every answer under way.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.served
	return err
}

// Play replaces the script, and forgets requests and problems.
func (s *Server) Play(script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.requests, s.problems = script, nil, nil
}

// Requests are the requests so far, in order of arrival.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Err tells of requests that the script had no answer to.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.problems...)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		refuse(w, http.StatusNotFound, r.Method+" "+r.URL.Path+" is not served here")
		return
	}
	request, err := read(w, r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	turn, err := s.next(request)
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, "scripted model: "+err.Error())
	case turn.Status != 0:
		refuse(w, turn.Status, turn.Text)
	case request.Stream:
		stream(w, request, turn)
	default:
		whole(w, request, turn)
	}
}

func read(w http.ResponseWriter, r *http.Request) (*Request, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	request := &Request{At: time.Now(), Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	return request, json.Unmarshal(body, request)
}

// next remembers the request and finds its answer.
func (s *Server) next(request *Request) (Turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
	turn, err := s.script.turn(request, s.Anew)
	if err != nil {
		s.problems = append(s.problems, err)
	}
	return turn, err
}

// refuse answers with an error in OpenAI's shape.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "type": "scripted", "code": status}})
}
