package app_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
)

// serveInside is a web server inside a sandbox: it shows the request that it got, and
// repeats what comes over a WebSocket.
func serveInside(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s host=%s body=%s", r.Method, r.URL, r.Host, body)
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			fmt.Fprintf(w, "\n%s: %s", name, r.Header.Get(name))
		}
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	kind, data, err := ws.Read(r.Context())
	if err == nil {
		_ = ws.Write(r.Context(), kind, append([]byte("echo "), data...))
	}
	_ = ws.Close(websocket.StatusNormalClosure, "")
}

// A server inside a sandbox is reached through the gateway, with the sandbox's token
// alone, by HTTP and WebSocket.
func TestGatewayPorts(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	ctx := t.Context()
	box, err := g.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil || box.PortToken == "" {
		t.Fatalf("%+v, %v", box, err)
	}
	program, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if _, err := g.WriteFile(ctx, box.ID, api.WriteFileQuery{Path: "server", Mode: 0o755}, program); err != nil {
		t.Fatal(err)
	}
	if _, err := g.StartProcess(ctx, box.ID, &api.StartProcess{Argv: []string{"/workspace/server"}, Env: map[string]string{orderVariable: `{"Port":8000}`}}); err != nil {
		t.Fatal(err)
	}
	inside := &http.Client{Transport: g.Port(box, 8000)}
	ask := func(header ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://inside/a/b?token=x", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer, err := inside.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	eventually(t, "the server does not answer", func() bool { status, _ := ask(); return status == http.StatusOK })
	_, text := ask("Authorization", "Bearer atollgw_secret", "Cookie", "atoll-port-token=x; own=1")
	if !strings.HasPrefix(text, "POST /a/b?token=x host=localhost:8000 body=hello") || strings.Contains(text, box.PortToken) || strings.Contains(text, "atollgw_") || !strings.Contains(text, "Cookie: own=1") {
		t.Error(text)
	}
	ws, response, err := websocket.Dial(ctx, "ws://inside/", &websocket.DialOptions{HTTPClient: inside})
	if err != nil {
		t.Fatalf("%v, %+v", err, response)
	}
	if err := ws.Write(ctx, websocket.MessageText, []byte("there")); err != nil {
		t.Fatal(err)
	}
	if _, data, err := ws.Read(ctx); err != nil || string(data) != "echo there" {
		t.Errorf("%q, %v", data, err)
	}
	_ = ws.CloseNow()
	g.namesPortByHeader(ctx, t, box)
	s.portsRefused(ctx, g, box)
}

// namesPortByHeader opens WebSockets to a port that the headers of E2B's clients name.
func (g *gatewayProcess) namesPortByHeader(ctx context.Context, t *testing.T, box *api.Sandbox) {
	t.Helper()
	for _, c := range []struct {
		path, id, port, token string
		status                int
	}{
		{"", box.ID, "8000", box.PortToken, http.StatusSwitchingProtocols},
		{"/", box.ID, "8000", box.PortToken, http.StatusSwitchingProtocols},
		{"/a/b/?c=d", box.ID, "8000", box.PortToken, http.StatusSwitchingProtocols},
		{"/", box.ID, "8000", "", http.StatusUnauthorized},
		{"/", box.ID, "8000", box.PortToken + "x", http.StatusUnauthorized},
		{"/", "aaaaaaaaaaaaaaaaaaaa", "8000", box.PortToken, http.StatusUnauthorized},
		{"/", box.ID, "0", box.PortToken, http.StatusBadRequest},
		{"/", box.ID, "", box.PortToken, http.StatusBadRequest},
		{"/", box.ID, "8001", box.PortToken, http.StatusBadGateway},
		{"/", box.ID, "49983", box.PortToken, http.StatusBadGateway}, // the gateway's own, by another token
		{"/", "", "8000", box.PortToken, http.StatusUnauthorized},    // the control plane
		{"/x/../y", box.ID, "8000", box.PortToken, http.StatusNotFound},
	} {
		header := http.Header{"E2b-Sandbox-Id": {c.id}, "E2b-Sandbox-Port": {c.port}, "E2b-Traffic-Access-Token": {c.token}}
		ws, answer, err := websocket.Dial(ctx, "ws://"+g.address+"/e2b"+c.path, &websocket.DialOptions{HTTPHeader: header})
		if answer == nil || answer.StatusCode != c.status {
			t.Errorf("%+v: %v, %+v", c, err, answer)
			continue
		}
		if err != nil {
			continue
		}
		if err := ws.Write(ctx, websocket.MessageText, []byte("there")); err != nil {
			t.Error(err)
		}
		if _, data, err := ws.Read(ctx); err != nil || string(data) != "echo there" {
			t.Errorf("%s: %q, %v", c.path, data, err)
		}
		_ = ws.CloseNow()
	}
}

// portsRefused tries what must not reach a port.
func (s *site) portsRefused(ctx context.Context, g *gatewayProcess, box *api.Sandbox) {
	s.t.Helper()
	for name, c := range map[string]struct {
		host, token string
		status      int
	}{
		"no token":          {"8000-" + box.ID + ".localhost", "", http.StatusUnauthorized},
		"another token":     {"8000-" + box.ID + ".localhost", box.PortToken + "x", http.StatusUnauthorized},
		"no such sandbox":   {"8000-aaaaaaaaaaaaaaaaaaaa.localhost", box.PortToken, http.StatusUnauthorized},
		"a closed port":     {"8001-" + box.ID + ".localhost", box.PortToken, http.StatusBadGateway},
		"no port":           {"0-" + box.ID + ".localhost", box.PortToken, http.StatusMisdirectedRequest},
		"too large a port":  {"65536-" + box.ID + ".localhost", box.PortToken, http.StatusMisdirectedRequest},
		"a foreign gateway": {"8000-" + box.ID + ".example.com", box.PortToken, http.StatusMisdirectedRequest},
	} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.address+"/", nil)
		if err != nil {
			s.t.Fatal(err)
		}
		r.Host = c.host
		r.Header.Set(api.PortTokenHeader, c.token)
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			s.t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != c.status {
			s.t.Errorf("%s: %d", name, answer.StatusCode)
		}
	}
}
