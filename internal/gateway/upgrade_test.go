package gateway_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/internal/gateway"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/store"
)

// handshake are the headers of a WebSocket's opening request.
func handshake(more ...string) []string {
	return append([]string{"Upgrade: websocket", "Connection: keep-alive, Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}, more...)
}

// accessOf returns real tokens on a real file, and the log-ins that were recorded.
func accessOf(t *testing.T) (a *access.Access, logins func() []access.LogIn) {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	var mu sync.Mutex
	var all []access.LogIn
	a = &access.Access{
		Tokens: access.NewTokenStore(access.TokenStoreOptions{DB: db}), Limiter: access.NewLimiter(access.LimiterOptions{}), Throttle: access.NewThrottle(nil),
		OnLogIn: func(_ context.Context, l access.LogIn) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, l)
		},
	}
	return a, func() []access.LogIn {
		mu.Lock()
		defer mu.Unlock()
		return append([]access.LogIn(nil), all...)
	}
}

// token creates a token and returns its text and id.
func token(t *testing.T, a *access.Access, spec access.Spec) (text, id string) {
	t.Helper()
	value, made, err := a.Tokens.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return value.Reveal(), made.ID
}

// greeter upgrades, sends a word, the caller and a path value, and holds the
// connection until its context or the client ends it.
func greeter(word string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		name := "nobody"
		if caller := access.FromContext(r.Context()); caller != nil {
			name = caller.Name
		}
		if err := c.Write(r.Context(), websocket.MessageText, []byte(strings.Join([]string{word, name, r.PathValue("name")}, " "))); err != nil {
			return
		}
		_, _, _ = c.Read(r.Context())
	})
}

// dial opens a WebSocket and returns it with its first message.
func dial(t *testing.T, s *gateway.Server, path, token string) (*websocket.Conn, string) {
	t.Helper()
	c, answer, err := websocket.Dial(t.Context(), "ws://"+s.Addresses()[0]+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		t.Fatal(err)
	}
	_ = answer
	t.Cleanup(func() { _ = c.CloseNow() })
	_, text, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, string(text)
}

// Two routes are served beside each other and beside REST, each with its caller and
// its path values; a connection with a scope is recorded, and ends with its token.
func TestUpgradesAreRoutedByPath(t *testing.T) {
	a, logins := accessOf(t)
	s := open(t, func(o *gateway.Options) {
		o.Access = a
		o.Upgrades = []gateway.Route{{Path: "/", Handler: greeter("chat")}, {Path: "/streams/{name}", Scope: access.Operator, Handler: greeter("stream")}}
	})
	maintain, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.Tokens.Maintain(maintain) }()
	t.Cleanup(func() { stop(); <-done })
	text, id := token(t, a, access.Spec{Name: "ann", Scope: access.Operator, Account: "a"})

	if _, got := dial(t, s, "/", "ignored"); got != "chat nobody " {
		t.Errorf("%q", got)
	}
	stream, got := dial(t, s, "/streams/one", text)
	if got != "stream ann one" {
		t.Errorf("%q", got)
	}
	if status, body := ask(t, s, "/streams/one"); status != 200 || !strings.HasPrefix(body, "rest") {
		t.Errorf("a plain request: %d %s", status, body)
	}
	if all := logins(); len(all) != 1 || all[0].Path != "/streams/{name}" || all[0].Caller.Token != id || all[0].Denied != nil {
		t.Errorf("%+v", all)
	}
	if err := a.Tokens.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, _, err := stream.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("the connection outlives its token: %v", err)
	}
}

// A request that is no upgrade at a route, or whose caller may not, is answered
// before anything is upgraded.
func TestUpgradesAreRefused(t *testing.T) {
	a, logins := accessOf(t)
	refusing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") })
	s := open(t, func(o *gateway.Options) {
		o.Access = a
		o.Upgrades = []gateway.Route{{Path: "/", Handler: refusing}, {Path: "/streams/{name}", Scope: access.Operator, Handler: refusing}}
	})
	reader, _ := token(t, a, access.Spec{Name: "reader", Scope: access.Read})
	slow, _ := token(t, a, access.Spec{Name: "slow", Scope: access.Operator, Quota: access.Quota{Requests: 1}})
	for _, test := range []struct {
		name, path string
		headers    []string
		status     int
		want       string
	}{
		{"the root", "/", handshake(), 200, "reached"},
		{"an unknown path", "/elsewhere", handshake(), 404, "no_websocket"},
		{"a path of REST", "/api/v1/costs", handshake(), 404, "no_websocket"},
		{"below a route", "/streams/a/b", handshake("Authorization: Bearer " + reader), 404, "no_websocket"},
		{"a path that is not clean", "/streams//a", handshake(), 404, "no_websocket"},
		{"a path that leads out", "/x/../", handshake(), 404, "no_websocket"},
		{"another origin", "/streams/a", handshake("Origin: https://evil.example.org"), 403, "origin"},
		{"without a token", "/streams/a", handshake(), 401, "unauthorized"},
		{"with a wrong token", "/streams/a", handshake("Authorization: Bearer x"), 401, "unauthorized"},
		{"with too small a scope", "/streams/a", handshake("Authorization: Bearer " + reader), 403, "operator"},
		{"within the rate", "/streams/a", handshake("Authorization: Bearer " + slow), 200, "reached"},
		{"above the rate", "/streams/a", handshake("Authorization: Bearer " + slow), 429, "rate_limited"},
		{"an old version", "/", []string{"Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 8", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}, 426, "websocket_version"},
		{"without a key", "/", []string{"Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"}, 400, "Sec-WebSocket-Key"},
		{"without Connection", "/", []string{"Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}, 400, "Connection"},
		{"REST", "/api/v1/costs", nil, 200, "rest"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if status, body := ask(t, s, test.path, test.headers...); status != test.status || !strings.Contains(body, test.want) {
				t.Errorf("%d %s, want %d %s", status, body, test.status, test.want)
			}
		})
	}
	denied, unknown := 0, 0
	for _, l := range logins() {
		switch {
		case l.Caller == nil && l.Denied != nil:
			unknown++
		case l.Denied != nil:
			denied++
		}
	}
	if all := logins(); len(all) != 4 || denied != 2 || unknown != 1 {
		t.Errorf("%d log-ins, %d denied, %d of no caller: %+v", len(all), denied, unknown, all)
	}
}

// Another method than GET is refused with the one that is served.
func TestUpgradeMethod(t *testing.T) {
	s := open(t, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addresses()[0]+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range handshake() {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	if status, body := do(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, r); status != http.StatusMethodNotAllowed {
		t.Errorf("%d %s", status, body)
	}
}

// A route has so many connections at once, and so many of one token; one that ends
// makes room.
func TestUpgradesAreBounded(t *testing.T) {
	a, _ := accessOf(t)
	s := open(t, func(o *gateway.Options) {
		o.Access = a
		o.Upgrades = []gateway.Route{{Path: "/few", Handler: greeter("few"), Max: 1}, {Path: "/own", Scope: access.Read, Handler: greeter("own"), PerToken: 1}}
	})
	ann, _ := token(t, a, access.Spec{Name: "ann", Scope: access.Read})
	bob, _ := token(t, a, access.Spec{Name: "bob", Scope: access.Read})
	first, _ := dial(t, s, "/few", "")
	dial(t, s, "/own", ann)
	dial(t, s, "/own", bob)
	for _, headers := range [][]string{{"/few"}, {"/own", "Authorization: Bearer " + ann}} {
		if status, body := ask(t, s, headers[0], handshake(headers[1:]...)...); status != http.StatusServiceUnavailable || !strings.Contains(body, "too_many_connections") {
			t.Errorf("%s: %d %s", headers[0], status, body)
		}
	}
	_ = first.CloseNow()
	until(t, "the route has room again", func() bool {
		c, _, err := websocket.Dial(t.Context(), "ws://"+s.Addresses()[0]+"/few", nil)
		if err != nil {
			return false
		}
		return c.CloseNow() == nil
	})
}

// Upgraded connections end with the server.
func TestUpgradesEndWithTheServer(t *testing.T) {
	s := open(t, func(o *gateway.Options) { o.Upgrades = []gateway.Route{{Path: "/", Handler: greeter("chat")}} })
	c, _ := dial(t, s, "/", "")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, _, err := c.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("the connection outlives the server: %v", err)
	}
}

// Routes that cannot be served are refused when the gateway is opened.
func TestRoutesAreChecked(t *testing.T) {
	for name, routes := range map[string][]gateway.Route{
		"a subtree":     {{Path: "/streams/", Handler: answerWith("x")}},
		"no path":       {{Path: "streams", Handler: answerWith("x")}},
		"twice":         {{Path: "/a", Handler: answerWith("x")}, {Path: "/a", Handler: answerWith("x")}},
		"a bad pattern": {{Path: "/{", Handler: answerWith("x")}},
		"no access":     {{Path: "/a", Scope: access.Read, Handler: answerWith("x")}},
	} {
		if s, err := gateway.Open(t.Context(), gateway.Options{Upgrades: routes, REST: answerWith("rest")}); err == nil {
			t.Errorf("%s is served", name)
			_ = s.Close(t.Context())
		}
	}
}
