package openclawtest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/gateway/ws"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/openclawtest"
)

// speaker answers every task with the same words, and at once: no model is as quick,
// so that what a client mixes up when it is told of the beginning and the end together
// shows here.
type speaker struct {
	mu      sync.Mutex
	history map[string][]chat.Message
}

const answer = "Hello from fake model."

func (*speaker) Resolve(_, model string) (string, error) { return model, nil }

func (s *speaker) Work(_ context.Context, job *session.Job, tell func(session.Event)) (*session.Outcome, error) {
	for _, word := range strings.SplitAfter(answer, " ") {
		tell(session.Event{Kind: session.Said, Delta: word})
	}
	use := chat.Usage{Input: 11, Output: 4}
	tell(session.Event{Kind: session.Used, Usage: &use})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history[job.Session] = append(s.history[job.Session], chat.Message{Role: chat.User, Text: job.Message}, chat.Message{Role: chat.Assistant, Text: answer})
	return &session.Outcome{Text: answer, Model: "fake/fake-1", Usage: use}, nil
}

func (s *speaker) History(_ context.Context, e *session.Entry, most int) ([]chat.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.history[e.ID]
	return all[max(0, len(all)-most):], nil
}

func (*speaker) Forget(context.Context, *session.Entry) error              { return nil }
func (*speaker) Compact(context.Context, *session.Entry) (int, int, error) { return 0, 0, nil }

type shelf struct{}

func (shelf) Agents(context.Context) ([]ws.Agent, error) {
	return []ws.Agent{{ID: "main", Name: "Main", Model: "fake/fake-1"}}, nil
}

func (shelf) Models(context.Context) ([]ws.Model, error) {
	return []ws.Model{{ID: "fake-1", Name: "Fake One", Provider: "fake", ContextWindow: 64000}}, nil
}

const clientToken = "token-of-the-clients-test"

// atollGateway serves the protocol on a port of this machine.
func atollGateway(t *testing.T, version string) (port int) {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	sessions := session.New(session.Options{DB: db, Worker: &speaker{history: map[string][]chat.Message{}}, Agents: func() []string { return []string{"main"} }})
	t.Cleanup(sessions.Close)
	desk := access.NewTokenStore(access.TokenStoreOptions{DB: db})
	desk.SetFixed(map[string]secret.Value{"test": secret.New(clientToken)})
	server := ws.New(ws.Options{
		Sessions: sessions, Catalogue: shelf{}, Version: version,
		Access: &access.Access{Tokens: desk, Devices: access.NewDevices(desk), Limiter: access.NewLimiter(access.LimiterOptions{}), Throttle: access.NewThrottle(nil)},
	})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(listener) }()
	t.Cleanup(func() { _ = srv.Close() })
	t.Cleanup(server.Close)
	return listener.Addr().(*net.TCPAddr).Port
}

const clientConfig = `{"plugins": {"enabled": false}, "gateway": {"mode": "local", "port": %d, "auth": {"mode": "token", "token": "%s"}}}`

// The clients of the real OpenClaw work with our gateway: its command line, whose
// output has what it has with the real gateway, and its terminal interface.
func TestOpenClawClientsTalkToOurGateway(t *testing.T) {
	version := cmp.Or(os.Getenv(versionVariable), openclawtest.Current)
	need.Root(t, "OpenClaw starts in a mount namespace")
	peer, err := openclawtest.Find(version, os.Getenv)
	if err != nil {
		need.Missing(t, err)
	}
	home := &openclawtest.Home{Dir: t.TempDir(), Env: []string{"TERM=xterm-256color"}}
	if err := home.Configure(fmt.Appendf(nil, clientConfig, atollGateway(t, version), clientToken)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"agent", []string{"agent", "--agent", "main", "--message", "hi there", "--json"}, answer},
		{"health", []string{"gateway", "call", "health", "--json"}, `"ok": true`},
		{"status", []string{"gateway", "call", "status", "--json"}, `"agent:main:main"`},
		{"sessions.list", []string{"gateway", "call", "sessions.list", "--json"}, `"agent:main:main"`},
	} {
		out, err := peer.Run(t.Context(), home, c.args...)
		if err != nil || !strings.Contains(out, c.says) {
			t.Fatalf("%s: %v\n%s", c.name, err, out)
		}
		if version == openclawtest.Current {
			compare(t, c.name, out)
		}
	}
	talk(t, peer, home)
}

// talk has some turns in the terminal interface: it shows the question and the
// answer, waits for the next, and sends it.
func talk(t *testing.T, peer *openclawtest.Peer, home *openclawtest.Home) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	screen := startTerminal(t, peer.Command(ctx, home, "tui", "--message", "hello from the terminal"))
	for _, text := range []string{"hello from the terminal", "the second question", "the third question"} {
		if text != "hello from the terminal" {
			screen.enter(t, text)
		}
		if !screen.shows(ctx, text) || !screen.shows(ctx, answer) || !screen.rests(ctx) {
			t.Fatalf("the terminal has no turn with %q:\n%s", text, screen.tail())
		}
	}
}

// compare checks that a command's output has what it has with the real gateway,
// with the same types, but for what is listed.
func compare(t *testing.T, name, out string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	ours := map[string]string{}
	members("", v, ours)
	left := lines(t, "differences.txt")
	for _, line := range lines(t, name+".txt") {
		path, kind, _ := strings.Cut(line, " ")
		path = strings.TrimPrefix(path, ".")
		if slices.ContainsFunc(left, func(entry string) bool { return leaves(entry, name, path) }) {
			continue
		}
		if got := ours["."+path]; path != "" && got != kind && got != "null" && kind != "null" {
			t.Errorf("%s: %s is %q, want %q", name, path, got, kind)
		}
	}
}

// leaves reports whether an entry of the list names a member, or one above it.
func leaves(entry, name, path string) bool {
	command, left, _ := strings.Cut(entry, " ")
	rest, below := strings.CutPrefix(path, left)
	return command == name && below && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func lines(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "clients", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// members are the members of a value with their types; elements of arrays are one.
func members(at string, v any, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		into[at] = "object"
		for key, member := range v {
			members(at+"."+key, member, into)
		}
	case []any:
		into[at] = "array"
		for _, element := range v {
			members(at+"[]", element, into)
		}
	case string:
		into[at] = "string"
	case float64:
		into[at] = "number"
	case bool:
		into[at] = "boolean"
	case nil:
		into[at] = cmp.Or(into[at], "null")
	}
}
