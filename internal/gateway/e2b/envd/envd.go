// Package envd serves what E2B's clients ask of a sandbox itself, in the words of the
// program that E2B runs in every sandbox: processes and files, as Connect in JSON, and the
// content of files. It works on the host, over the wire: there is no such program inside.
package envd

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/membudget"
)

const (
	// Port is the port of a sandbox at which clients ask.
	Port = 49983
	// Version is the version of E2B's program whose features there are: all before the
	// metadata of files.
	Version = "0.6.1"
	// MaxRequests bounds the requests under way to one sandbox.
	MaxRequests = 64
	// MaxMessage bounds one message of a client.
	MaxMessage = 6 << 20
	// user is the only user inside, by E2B's name.
	user = "user"
)

// Options configure a Server.
type Options struct {
	Made    *sandboxes.Service
	Inbound *membudget.Budget
	Logger  *slog.Logger
}

// Server serves requests for sandboxes.
type Server struct {
	Options
	mux      *http.ServeMux
	started  startedProcesses
	watchers watchers

	mu   sync.Mutex
	open map[string]int // requests under way, by sandbox
}

// New returns a server. Close it before its options.
func New(o Options) *Server {
	s := &Server{Options: o, mux: http.NewServeMux(), open: map[string]int{}}
	s.mux.HandleFunc("GET /health", s.health)
	s.mux.HandleFunc("GET /files", s.plain(readFile))
	s.mux.HandleFunc("POST /files", s.plain(writeFiles))
	for path, serve := range procedures() {
		s.mux.HandleFunc("POST "+path, s.procedure(serve))
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "there is nothing at this path")
	})
	return s
}

// Close ends the watchers of clients.
func (s *Server) Close() { s.watchers.close() }

// errUser is a user that there is not.
var errUser = errors.New("there is one user in the sandbox, with the name user and without the rights of root")

// errGone is the answer about a sandbox that does not run, or that the token is not of: which
// ids there are is not told.
const errGone = "there is no sandbox of this id that runs and that the access token is of; connect resumes a paused one"

// ServeSandbox serves a request for a sandbox that has its token.
func (s *Server) ServeSandbox(w http.ResponseWriter, r *http.Request, id string) {
	record, err := s.Made.Get(r.Context(), id)
	if err != nil || record.ID != id || !mayEnter(r, record) {
		turnAway(w, http.StatusBadGateway, errGone)
		return
	}
	leave, ok := s.enter(id)
	if !ok {
		w.Header().Set("Retry-After", "1")
		turnAway(w, http.StatusTooManyRequests, fmt.Sprintf("%d requests to this sandbox are under way", MaxRequests))
		return
	}
	defer leave()
	in, err := s.Made.Enter(r.Context(), record)
	if err != nil {
		turnAway(w, http.StatusBadGateway, errGone)
		return
	}
	defer in.Leave()
	defer s.recover(w, r)
	s.mux.ServeHTTP(w, r.WithContext(withInside(in)))
}

// turnAway refuses a request whose body is not read: it need not come.
func turnAway(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Connection", "close")
	refuse(w, status, message)
}

// recover answers for a handler that panicked: one request must not end the gateway.
func (s *Server) recover(w http.ResponseWriter, r *http.Request) {
	if broken := recover(); broken != nil {
		if broken != http.ErrAbortHandler { //nolint:errorlint // a value of panic
			s.Logger.ErrorContext(r.Context(), "a request for a sandbox failed", "path", r.URL.Path, "error", broken, "stack", string(debug.Stack()))
		}
		panic(http.ErrAbortHandler)
	}
}

// enter counts a request to a sandbox until leave is called.
func (s *Server) enter(id string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[id] >= MaxRequests {
		return nil, false
	}
	s.open[id]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[id]--; s.open[id] == 0 {
			delete(s.open, id)
		}
	}, true
}

// mayEnter reports whether a request has the access token of a sandbox, or a signature by it.
func mayEnter(r *http.Request, record *sandboxes.Record) bool {
	token := record.Details.AccessToken
	if token == "" {
		return false
	}
	if given := r.Header.Get("X-Access-Token"); given != "" {
		return subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1
	}
	return r.URL.Path == "/files" && isSigned(r, token)
}

// box is the sandbox of a request.
type box struct {
	*sandboxes.Inside
	server *Server
	files  *guestfs.Files
}

func (s *Server) box(r *http.Request) (*box, error) {
	name := r.URL.Query().Get("username")
	if given, _, ok := r.BasicAuth(); ok {
		name = given
	}
	if name != "" && name != user {
		return nil, errUser
	}
	in := insideOf(r.Context())
	files, err := in.Files()
	return &box{Inside: in, server: s, files: files}, err
}

// health says that the sandbox runs.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if _, err := insideOf(r.Context()).Processes(); err != nil {
		refuse(w, http.StatusBadGateway, errGone)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// path returns the absolute path that a client means: ~ is the home, and relative ones
// begin there.
func (b *box) path(given string) (string, error) {
	if given == "~" {
		given = ""
	}
	given = strings.TrimPrefix(given, "~/")
	if len(given) > maxPath || strings.ContainsRune(given, 0) {
		return "", &fault{invalidArgument, fmt.Sprintf("a path has at most %d bytes", maxPath)}
	}
	return b.Path(given), nil
}

// maxPath is the longest path of Linux.
const maxPath = 4096
