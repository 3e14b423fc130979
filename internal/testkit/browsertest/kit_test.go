package browsertest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/internettest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// patience bounds every wait of a test.
const patience = time.Minute

// page is the page of shop.example.
const page = `<!doctype html><title>Shop</title><h1>Fruit</h1><form><label>Name <input value="Ann"></label></form>
<button style="position:absolute;left:0;top:200px;width:400px;height:200px" onclick="document.title='clicked';document.body.style.background='red'">Buy</button>
<script>keys = ''; addEventListener('keydown', e => { keys += e.key })</script>`

// site is an installation with a gateway and a browser.
type site struct {
	app     *app.App
	address string
	name    string // of the browser
	tokens  map[string]string
	dir     string
	file    string // of the configuration
	getenv  func(string) string
	docker  string // the address of an engine; "" is none
}

func newSite(t *testing.T) *site {
	t.Helper()
	need.Program(t, "chromium-headless-shell", "chromium-headless-shell")
	s := &site{tokens: map[string]string{}}
	s.open(t, serveShop(t))
	s.serve(t)
	s.makeTokens(t)
	s.start(t)
	return s
}

// serveShop serves shop.example and returns the proxy by which it is reached.
func serveShop(t *testing.T) string {
	t.Helper()
	net, err := internettest.Start(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, page)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = net.Close() })
	return net.Proxy
}

// open opens an installation whose browsers reach shop.example.
func (s *site) open(t *testing.T, proxy string) {
	t.Helper()
	s.makeDir(t)
	s.openWith(t, fmt.Sprintf(`{agents: {defaults: {workspace: %q, sandbox: {mode: "all", scope: "session", backend: "linux", browser: {cdp: "operator"},
		egress: {mode: "enforce", allow: ["shop.example:80"], upstream: %q}}},
		list: [{id: "main"}, {id: "closed", sandbox: {browser: {cdp: "off"}}}, {id: "far", sandbox: {browser: {cdpSourceRange: "192.0.2.0/24"}}},
			{id: "unseen", sandbox: {browser: {view: "off"}}}, {id: "held", sandbox: {browser: {control: "off"}}}]}}`, filepath.Join(s.dir, "agent"), proxy))
}

// makeDir makes the directory of the installation.
func (s *site) makeDir(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll") //nolint:usetesting // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.dir = dir
}

// openWith opens an installation with a configuration, without any engine.
func (s *site) openWith(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(s.dir, "atoll.json5")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ATOLL_STATE_DIR": filepath.Join(s.dir, "state"), "HOME": s.dir, "DOCKER_HOST": cmp.Or(s.docker, "unix:///nowhere"), "CONTAINER_HOST": "unix:///nowhere", "MODEL_KEY": "a-key"}
	s.file, s.getenv = file, func(name string) string { return env[name] }
	var err error
	s.app, err = app.Open(t.Context(), provide.LoadOptions{Getenv: s.getenv, ConfigPath: file})
	if err != nil {
		t.Fatal(err)
	}
	opened := s.app
	t.Cleanup(opened.Close)
	t.Cleanup(func() {
		for _, e := range entries(t, opened) {
			if err := opened.Manager.ForceRemove(context.WithoutCancel(t.Context()), e); err != nil {
				t.Error(err)
			}
		}
	})
}

func entries(t *testing.T, a *app.App) (names []string) {
	t.Helper()
	all, err := a.Registry.List(context.WithoutCancel(t.Context()), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.ContainerName)
	}
	return names
}

// serve starts the gateway.
func (s *site) serve(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	g, err := serve.Open(ctx, s.app.Parts(), serve.Options{Listen: []string{"127.0.0.1:0"}, Grace: time.Second})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	s.address = g.Addresses()[0]
}

// makeTokens makes the tokens that the tests use.
func (s *site) makeTokens(t *testing.T) {
	t.Helper()
	for name, spec := range map[string]access.Spec{
		"operator": {Scope: access.Operator}, "run": {Scope: access.Run}, "read": {Scope: access.Read},
		"other": {Scope: access.Operator, Account: "other"}, "all": {Scope: access.Operator}, "ends": {Scope: access.Operator},
	} {
		text, _, err := serve.Tokens(s.app.Installation).Create(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		s.tokens[name] = text.Reveal()
	}
}

// start starts the browser.
func (s *site) start(t *testing.T) {
	t.Helper()
	var b api.Browser
	s.ask(t, question{"all", http.MethodPost, "", `{"session":"agent:main:one"}`}, http.StatusOK, &b)
	s.name = b.Name
}

// question is a request below the route of browsers, as a token by its name.
type question struct{ token, method, path, body string }

// ask calls a route of browsers and reads its answer, which has the status.
func (s *site) ask(t *testing.T, q question, status int, into any) {
	t.Helper()
	got, text := s.request(t, q)
	if got != status {
		t.Fatalf("%+v: %d %s", q, got, text)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func (s *site) request(t *testing.T, q question, header ...string) (int, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, "http://"+s.address+"/api/v1/browsers"+q.path, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.token != "" {
		r.Header.Set("Authorization", "Bearer "+cmp.Or(s.tokens[q.token], q.token))
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	r.Host = r.Header.Get("Host")
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, bytes.TrimSpace(text)
}

// ticket returns a WebSocket that can be opened once.
func (s *site) ticket(t *testing.T, token, endpoint, body string) string {
	t.Helper()
	var e api.BrowserEndpoint
	s.ask(t, question{token, http.MethodPost, "/" + s.name + "/" + endpoint, body}, http.StatusOK, &e)
	if left := time.Until(e.Expires); left <= 0 || left > time.Minute {
		t.Errorf("it expires in %s", left)
	}
	return e.WSEndpoint
}

// dial opens a WebSocket; status is that of the answer if it is refused.
func dial(t *testing.T, url string, header http.Header) (ws *websocket.Conn, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ws, answer, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: header, Host: header.Get("Host")})
	if answer == nil {
		t.Fatal(err)
	}
	if answer.Body != nil && err != nil {
		_ = answer.Body.Close()
	}
	if err == nil {
		ws.SetReadLimit(32 << 20)
		t.Cleanup(func() { _ = ws.CloseNow() })
	}
	return ws, answer.StatusCode
}
