package relaytest

import (
	"net/http"
	"net/http/cgi" //nolint:gosec // the only way to git's own server, in a test
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// GitServer serves bare repositories over smart HTTP.
type GitServer struct {
	URL   string
	Token string // who has it may read and write
	root  string

	mu       sync.Mutex
	requests []string
}

// NewGitServer starts a server that ends with the test.
func NewGitServer(t *testing.T, token string) *GitServer {
	t.Helper()
	backend := backendPath(t)
	s := &GitServer{Token: token, root: t.TempDir()}
	handler := &cgi.Handler{
		Path: backend,
		Env:  []string{"GIT_PROJECT_ROOT=" + s.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=relay", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/nonexistent"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		if _, password, ok := r.BasicAuth(); !ok || password != s.Token {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

func backendPath(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Fatalf("git is needed: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
}

func (s *GitServer) note(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.String())
}

// Requests are the requests so far, without their headers.
func (s *GitServer) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// Create makes a repository with one commit on main, and returns its address.
func (s *GitServer) Create(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	work := t.TempDir()
	s.git(t, work, "init", "-q", "-b", "main")
	for path, data := range files {
		file := filepath.Join(work, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.git(t, work, "add", "-A")
	s.git(t, work, "commit", "-q", "--allow-empty", "-m", "first")
	s.git(t, work, "clone", "-q", "--bare", work, s.Dir(name))
	s.git(t, s.Dir(name), "config", "http.receivepack", "true")
	s.git(t, s.Dir(name), "config", "receive.fsckObjects", "true")
	return s.URL + "/" + name
}

// Dir is where a repository is on the server.
func (s *GitServer) Dir(name string) string { return filepath.Join(s.root, name) }

// Git runs git in a repository of the server, and returns what it printed.
func (s *GitServer) Git(t *testing.T, name string, args ...string) string {
	t.Helper()
	return s.git(t, s.Dir(name), args...)
}

func (s *GitServer) git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Owner", "GIT_AUTHOR_EMAIL=owner@example.com", "GIT_COMMITTER_NAME=Owner", "GIT_COMMITTER_EMAIL=owner@example.com"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Redirect starts a server that sends everybody to another one.
func Redirect(t *testing.T, to string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
