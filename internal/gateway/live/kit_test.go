package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/live"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = time.Minute

var errNone = errors.New("there is none")

// source has rows and the events of one run, of account acme.
type source struct {
	mu      sync.Mutex
	rows    map[string]string
	events  []api.Event
	signals map[chan struct{}]bool
	reads   int
}

func (s *source) Rows(_ context.Context, c *access.Caller, topic string) (rows []live.Row, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	for key, value := range s.rows {
		if strings.HasPrefix(key, topic+" ") && c.Sees("acme") {
			rows = append(rows, live.Row{Key: key, JSON: []byte(`"` + value + `"`)})
		}
	}
	return rows, nil
}

func (s *source) set(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows[key] = value; value == "" {
		delete(s.rows, key)
	}
}

func (s *source) Run(_ context.Context, c *access.Caller, id string, after int64) (*api.Run, []api.Event, error) {
	if id != "r1" || !c.Sees("acme") {
		return nil, nil, errNone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &api.Run{ID: id}, slices.Clone(s.events[min(after, int64(len(s.events))):]), nil
}

// happen adds events to the run.
func (s *source) happen(n int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.events = append(s.events, api.Event{Seq: int64(len(s.events) + 1), Type: "text_delta", Text: text})
	}
	for signal := range s.signals {
		select {
		case signal <- struct{}{}:
		default:
		}
	}
}

func (s *source) FollowRun(string) (chan struct{}, func()) {
	signal := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signals[signal] = true
	return signal, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.signals, signal)
	}
}

func (s *source) Session(context.Context, *access.Caller, string) (*api.Session, error) {
	return nil, errNone
}

func (s *source) FollowSessions(*access.Caller) *session.Subscription {
	none := session.New(session.Options{})
	defer none.Close()
	return none.Subscribe(session.View{All: true}, 1)
}

func (s *source) Event(*session.Event) (api.Event, bool) { return api.Event{}, false }

func (s *source) Problem(_ *access.Caller, err error) *api.Problem {
	status := http.StatusNotFound
	if errors.Is(err, access.ErrDenied) {
		status = http.StatusUnauthorized
	}
	return &api.Problem{Status: status, Detail: err.Error()}
}

const cookieName = "atoll_test"

// site is a handler with real tokens and web logins.
type site struct {
	t       *testing.T
	source  *source
	handler *live.Handler
	access  *access.Access
	url     string
}

func newSite(t *testing.T) *site {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	tokens := access.NewTokenStore(access.TokenStoreOptions{DB: db})
	s := &site{t: t, source: &source{rows: map[string]string{}, signals: map[chan struct{}]bool{}}}
	s.access = &access.Access{Tokens: tokens, Web: access.NewWebLogins(tokens), Limiter: access.NewLimiter(access.LimiterOptions{}), Throttle: access.NewThrottle(nil), CookieName: cookieName}
	s.handler = live.New(live.Options{Source: s.source, Access: s.access, Logger: slog.New(slog.DiscardHandler), LogIn: 300 * time.Millisecond})
	server := httptest.NewServer(s.handler)
	s.url = "ws" + strings.TrimPrefix(server.URL, "http") + live.Path
	t.Cleanup(func() { s.handler.Close(); server.Close(); _ = db.Close() })
	return s
}

// token returns the text of a new token.
func (s *site) token(account string) string {
	s.t.Helper()
	text, _, err := s.access.Tokens.Create(s.t.Context(), access.Spec{Scope: access.Read, Account: account})
	if err != nil {
		s.t.Fatal(err)
	}
	return text.Reveal()
}

// client is one end of a connection.
type client struct {
	t  *testing.T
	ws *websocket.Conn
}

// dial connects with headers, named and given in turn.
func (s *site) dial(header ...string) *client {
	s.t.Helper()
	ws, response, err := s.try(header...)
	if err != nil {
		s.t.Fatal(err, response)
	}
	c := &client{s.t, ws}
	s.t.Cleanup(func() { _ = ws.CloseNow() })
	return c
}

func (s *site) try(header ...string) (*websocket.Conn, *http.Response, error) {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	ws, response, err := websocket.Dial(ctx, s.url, &websocket.DialOptions{HTTPHeader: h})
	if err == nil {
		ws.SetReadLimit(8 << 20)
	}
	return ws, response, err
}

// as connects with a token and waits until the caller is known.
func (s *site) as(token string) *client {
	s.t.Helper()
	c := s.dial("Authorization", "Bearer "+token)
	if m := c.next(); m.Type != api.LiveReady {
		s.t.Fatalf("%+v", m)
	}
	return c
}

func (c *client) send(q any) {
	c.t.Helper()
	text, ok := q.(string)
	if !ok {
		b, err := json.Marshal(q)
		if err != nil {
			c.t.Fatal(err)
		}
		text = string(b)
	}
	if err := c.ws.Write(c.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) subscribe(topic string, since int64) {
	c.t.Helper()
	c.send(api.LiveRequest{Type: api.LiveSubscribe, Topic: topic, Since: since})
}

func (c *client) read() (*api.LiveMessage, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	_, text, err := c.ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	m := &api.LiveMessage{}
	return m, json.Unmarshal(text, m)
}

func (c *client) next() *api.LiveMessage {
	c.t.Helper()
	m, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// closed reads until the connection ends, and returns with which status.
func (c *client) closed() websocket.StatusCode {
	c.t.Helper()
	for {
		if _, err := c.read(); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// is checks the type, the keys and what is removed of a message.
func is(t *testing.T, m *api.LiveMessage, kind string, keys ...string) {
	t.Helper()
	got := slices.Clone(m.Keys)
	for _, key := range m.Removed {
		got = append(got, "-"+key)
	}
	slices.Sort(got)
	if slices.Sort(keys); m.Type != kind || fmt.Sprint(got) != fmt.Sprint(keys) {
		t.Fatalf("%+v; want %s %v", m, kind, keys)
	}
}
