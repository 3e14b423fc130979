package fakellm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxBody bounds what one request may hold.
const maxBody = 64 << 20

// Server is a model that listens.
type Server struct {
	listener net.Listener
	http     *http.Server
	served   chan struct{}

	mu       sync.Mutex
	anew     bool
	player   Player
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
	s := &Server{listener: listener, player: Player{Script: script}, served: make(chan struct{})}
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

// BeginAnew has the script begin again with every message of the user.
func (s *Server) BeginAnew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.anew = true
}

// Play replaces the script, and forgets requests and problems.
func (s *Server) Play(script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.player, s.requests, s.problems = Player{Script: script}, nil, nil
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
	request, err := Read(w, r)
	switch {
	case request == nil:
		new(Request).Refuse(w, http.StatusNotFound, "scripted", err.Error())
		return
	case err != nil:
		request.Refuse(w, http.StatusBadRequest, "scripted", err.Error())
		return
	}
	turn, err := s.next(request)
	if err != nil {
		request.Refuse(w, http.StatusBadRequest, "scripted", "scripted model: "+err.Error())
		return
	}
	request.Answer(w, turn)
}

// next remembers the request and finds its answer.
func (s *Server) next(request *Request) (Turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
	if turn, ok := request.aside(); ok {
		return turn, nil
	}
	s.player.Anew = s.anew
	turn, err := s.player.Next(request)
	if err != nil {
		s.problems = append(s.problems, err)
	}
	return turn, err
}
