package browsertest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/otheruser"
)

// TestBrowsers tests all ways into one browser.
func TestBrowsers(t *testing.T) {
	need.Time(t, "it runs a browser and packages of npm")
	s := newSite(t)
	s.attackEndpoints(t)
	t.Run("programs of others", s.testClients)
	t.Run("the owner's socket", s.testSocket)
	t.Run("the command line", s.testCommands)
	t.Run("watching", s.testView)
	t.Run("what the configuration forbids", s.testForbidden)
	t.Run("AttackBrowser22_TakingOver", s.testControl)
	t.Run("the page", func(t *testing.T) { s.testPage(t, "view") })
	t.Run("AttackBrowser23_Viewers", s.testViewers)
	t.Run("AttackBrowser22_Revoked", s.testRevoked)
	t.Run("the audit log", s.testAudit)
	t.Run("the end", s.testStop)
}

// attackEndpoints has those tried who may not attach to the browser.
func (s *site) attackEndpoints(t *testing.T) {
	t.Helper()
	t.Run("AttackBrowser19_Tokens", s.testTokens)
	t.Run("AttackBrowser19_Tickets", s.testTickets)
	t.Run("AttackBrowser20_Pages", s.testOrigins)
	t.Run("AttackBrowser20_Smuggling", s.testSmuggling)
	t.Run("AttackBrowser21_Sessions", s.testSessions)
}

// TestAttackBrowserEndpointsAsUser has the attacks on endpoints and views tried where the gateway and
// the browser are an ordinary user's.
func TestAttackBrowserEndpointsAsUser(t *testing.T) {
	need.Time(t, "it starts a browser as another user")
	const attacks = "^TestBrowsers$/^AttackBrowser"
	if out, err := otheruser.Rerun(t, attacks); err != nil || strings.Count(out, "--- PASS: TestBrowsers/AttackBrowser") != 8 {
		t.Errorf("%v\n%s", err, out)
	}
}

// testTokens checks who is refused.
func (s *site) testTokens(t *testing.T) {
	cdp := "/" + s.name + "/cdp"
	for _, c := range []struct {
		token, path string
		status      int
	}{
		{"", cdp, http.StatusUnauthorized}, {"wrong", cdp, http.StatusUnauthorized}, {"run", cdp, http.StatusForbidden}, {"read", cdp, http.StatusForbidden},
		{"other", cdp, http.StatusNotFound}, {"operator", "/atoll-no-such/cdp", http.StatusNotFound}, {"all", cdp, http.StatusOK},
	} {
		s.ask(t, question{c.token, http.MethodPost, c.path, ""}, c.status, nil)
	}
	for session, code := range map[string]string{"agent:closed:one": "browser_cdp_off", "agent:far:one": "browser_address"} {
		var b api.Browser
		s.ask(t, question{"operator", http.MethodPost, "", `{"session":"` + session + `"}`}, http.StatusOK, &b)
		var p api.Problem
		s.ask(t, question{"operator", http.MethodPost, "/" + b.Name + "/cdp", ""}, http.StatusForbidden, &p)
		if p.Code != code {
			t.Errorf("%s: %+v", session, p)
		}
	}
	var own, others api.Browsers
	s.ask(t, question{"read", http.MethodGet, "", ""}, http.StatusOK, &own)
	s.ask(t, question{"other", http.MethodGet, "", ""}, http.StatusOK, &others)
	if len(own.Browsers) != 3 || len(others.Browsers) != 0 {
		t.Errorf("%+v, %+v", own, others)
	}
}

// testTickets checks that a ticket lets one connection in, for its browser and its endpoint.
func (s *site) testTickets(t *testing.T) {
	url := s.ticket(t, "operator", "cdp", "")
	for _, wrong := range []string{url + "x", strings.Replace(url, s.name, "other", 1), strings.Replace(url, "/cdp/", "/view/", 1)} {
		if _, status := dial(t, wrong, nil); status != http.StatusUnauthorized {
			t.Errorf("%s: %d", wrong, status)
		}
	}
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, status := dial(t, url, nil); status == http.StatusSwitchingProtocols {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d connections with one ticket", won.Load())
	}
	bare := "ws://" + s.address + "/api/v1/browsers/" + s.name + "/cdp"
	if _, status := dial(t, bare, nil); status != http.StatusUnauthorized {
		t.Error("without a token:", status)
	}
	if _, status := dial(t, bare, http.Header{"Authorization": {"Bearer " + s.tokens["operator"]}}); status != http.StatusSwitchingProtocols {
		t.Error("with a token:", status)
	}
}

// testOrigins checks that pages of other sites get nothing.
func (s *site) testOrigins(t *testing.T) {
	for _, header := range []http.Header{
		{"Origin": {"https://evil.example"}}, {"Origin": {"null"}}, {"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"none"}},
	} {
		if _, status := dial(t, s.ticket(t, "operator", "cdp", ""), header); status != http.StatusForbidden {
			t.Errorf("%v: %d", header, status)
		}
	}
	for _, path := range []string{"/json/new?about:blank", "/json/list", "/json/close/x", "/json/protocol"} {
		if status, _ := s.request(t, question{"operator", http.MethodGet, "/" + s.name + path, ""}); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
	version := question{"operator", http.MethodGet, "/" + s.name + "/json/version", ""}
	form := question{"operator", http.MethodPost, "/" + s.name + "/cdp", "a=b"}
	for _, c := range []struct {
		q      question
		header []string
		status int
	}{
		{version, []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		{version, []string{"Host", "evil.example"}, http.StatusMisdirectedRequest}, // a name that was made to mean this machine
		{question{"", http.MethodGet, "/" + s.name + "/json/new?about:blank", ""}, []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "image"}, http.StatusForbidden},
		{form, []string{"Origin", "https://evil.example", "Content-Type", "application/x-www-form-urlencoded"}, http.StatusForbidden},
		{form, []string{"Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"}, http.StatusForbidden},
	} {
		if status, text := s.request(t, c.q, c.header...); status != c.status {
			t.Errorf("%+v: %d %s", c, status, text)
		}
	}
	for _, endpoint := range []string{"cdp", "view"} {
		if _, status := dial(t, s.ticket(t, "operator", endpoint, `{}`), http.Header{"Host": {"evil.example"}}); status != http.StatusMisdirectedRequest {
			t.Error(endpoint, "by another name:", status)
		}
	}
}

// testSmuggling checks that nothing hides behind a request for a WebSocket: what follows it
// is never read as a second request.
func (s *site) testSmuggling(t *testing.T) {
	const head = "GET /api/v1/browsers/%s/cdp/%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	var all sync.WaitGroup
	second := "GET /api/v1/browsers HTTP/1.1\r\nHost: " + s.address + "\r\nAuthorization: Bearer " + s.tokens["operator"] + "\r\n\r\n"
	for name, more := range map[string]string{
		"a second request": "\r\n" + second,
		"a body":           "Content-Length: " + strconv.Itoa(len(second)) + "\r\n\r\n" + second,
		"two lengths":      "Content-Length: 1\r\nContent-Length: 2\r\n\r\n" + second,
		"chunks":           "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second,
	} {
		for _, ticket := range []string{"AAAAAAAAAAAAAAAAAAAAAAAAAA", path.Base(s.ticket(t, "operator", "cdp", ""))} {
			all.Go(func() {
				answer := s.sendRaw(t, fmt.Sprintf(head, s.name, ticket, s.address)+more)
				if strings.Count(answer, "HTTP/1.1 ") != 1 || strings.Contains(answer, `"browsers"`) {
					t.Errorf("%s: %q", name, answer)
				}
			})
		}
	}
	all.Wait()
}

// sendRaw sends bytes to the gateway and returns all that it answers until it ends the
// connection, or for a second after it has opened the WebSocket.
func (s *site) sendRaw(t *testing.T, text string) string {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.address)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Error(err)
		return ""
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	var answer []byte
	for part := make([]byte, 4096); ; {
		n, err := conn.Read(part)
		answer = append(answer, part[:n]...)
		if err != nil {
			return string(answer)
		}
		if bytes.HasPrefix(answer, []byte("HTTP/1.1 101 ")) {
			_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // a second answer would be there
		}
	}
}

// testForbidden checks that the keys of the configuration are kept, and named.
func (s *site) testForbidden(t *testing.T) {
	for _, c := range []struct{ session, path, body, code string }{
		{"agent:unseen:one", "/view", `{}`, "browser_view_off"},
		{"agent:unseen:one", "/vnc", `{}`, "browser_view_off"},
		{"agent:held:one", "/view", `{"control":true}`, "browser_control_off"},
		{"agent:held:one", "/vnc", `{}`, "browser_no_window"},
	} {
		var b api.Browser
		s.ask(t, question{"operator", http.MethodPost, "", `{"session":"` + c.session + `"}`}, http.StatusOK, &b)
		var p api.Problem
		status, text := s.request(t, question{"operator", http.MethodPost, "/" + b.Name + c.path, c.body})
		if err := json.Unmarshal(text, &p); err != nil || status < http.StatusBadRequest || p.Code != c.code || !strings.Contains(p.Hint, "sandbox.browser.") {
			t.Errorf("%+v: %d %s", c, status, text)
		}
	}
}

// program is a program that is attached.
type program struct {
	t    *testing.T
	ws   *websocket.Conn
	last int
}

func (s *site) program(t *testing.T, token string) *program {
	t.Helper()
	ws, status := dial(t, s.ticket(t, token, "cdp", ""), nil)
	if ws == nil {
		t.Fatal(status)
	}
	return &program{t: t, ws: ws}
}

// call makes a call and returns the text of its answer.
func (p *program) call(session, method, params string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	p.last++
	text := callText(p.last, session, method, params)
	if err := p.ws.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		p.t.Fatal(err)
	}
	for {
		_, data, err := p.ws.Read(ctx)
		if err != nil {
			p.t.Fatal(method, err)
		}
		if id, answer := answerOf(data); id == p.last {
			return answer
		}
	}
}

// testSessions checks that a program cannot use the session of another one.
func (s *site) testSessions(t *testing.T) {
	a, b := s.program(t, "operator"), s.program(t, "all")
	target := member(t, b.call("", "Target.createTarget", `{"url":"about:blank"}`), "targetId")
	session := member(t, b.call("", "Target.attachToTarget", `{"flatten":true,"targetId":"`+target+`"}`), "sessionId")
	if got := b.call(session, "Runtime.evaluate", `{"expression":"40+2"}`); !strings.Contains(got, "42") {
		t.Error(got)
	}
	if got := a.call(session, "Runtime.evaluate", `{"expression":"40+2"}`); !strings.Contains(got, "no such session") {
		t.Error(got)
	}
	again := member(t, b.call("", "Target.attachToBrowserTarget", `{}`), "sessionId")
	for _, method := range []string{"Browser.close", "Tracing.start"} {
		if got := b.call(again, method, `{}`); !strings.Contains(got, "is refused") {
			t.Error(method, got)
		}
	}
	context := member(t, b.call("", "Target.createBrowserContext", `{}`), "browserContextId")
	hidden := member(t, b.call("", "Target.createTarget", `{"url":"about:blank","browserContextId":"`+context+`"}`), "targetId")
	if got := a.call("", "Storage.getCookies", `{"browserContextId":"`+context+`"}`); !strings.Contains(got, "another program's") {
		t.Error(got)
	}
	if got := a.call("", "Target.getTargets", `{}`); strings.Contains(got, hidden) || !strings.Contains(got, target) {
		t.Error(got)
	}
	stolen := member(t, a.call("", "Target.attachToTarget", `{"flatten":true,"targetId":"`+hidden+`"}`), "sessionId")
	if got := a.call(stolen, "Network.getCookies", `{}`); !strings.Contains(got, "no such session") {
		t.Error(got)
	}
	b.call("", "Target.closeTarget", `{"targetId":"`+target+`"}`)
}

// revoke ends a token by its name.
func (s *site) revoke(t *testing.T, name string) {
	t.Helper()
	tokens := serve.Tokens(s.app.Installation)
	all, err := tokens.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if strings.Contains(s.tokens[name], all[i].ID) {
			err = tokens.Revoke(t.Context(), all[i].ID)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// testRevoked checks that connections end with their token, within a second.
func (s *site) testRevoked(t *testing.T) {
	p := s.program(t, "ends")
	viewer, _ := dial(t, s.ticket(t, "ends", "view", `{}`), nil)
	s.revoke(t, "ends")
	since := time.Now()
	for _, ws := range []*websocket.Conn{p.ws, viewer} {
		for err := error(nil); err == nil; {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			_, _, err = ws.Read(ctx)
			cancel()
		}
	}
	if took := time.Since(since); took > 10*time.Second {
		t.Errorf("they ended after %s", took)
	}
}

// testAudit checks that connections were recorded with what was asked for.
func (s *site) testAudit(t *testing.T) {
	all, err := audit.Tail(service.AuditDir(s.app.Settings), 1000, func(line string) bool { return strings.Contains(line, `"kind":"browser"`) })
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range all {
		text.WriteString(all[i].JSON + "\n")
	}
	for _, want := range []string{`"event":"attached"`, `"event":"detached"`, `"event":"taken"`, `"event":"viewed"`, "Runtime.evaluate", "Browser.close", s.name} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s is missing in %s", want, text.String())
		}
	}
	for _, secret := range s.tokens {
		if strings.Contains(text.String(), secret) {
			t.Error("a token is in the log")
		}
	}
}

// testStop checks that a browser that was stopped can be started again.
func (s *site) testStop(t *testing.T) {
	s.ask(t, question{"other", http.MethodPost, "/" + s.name + "/stop", ""}, http.StatusNotFound, nil)
	s.ask(t, question{"operator", http.MethodPost, "/" + s.name + "/stop", ""}, http.StatusOK, nil)
	if _, status := dial(t, s.ticket(t, "operator", "cdp", ""), nil); status != http.StatusConflict {
		t.Error(status)
	}
	s.start(t)
	if got := s.program(t, "operator").call("", "Browser.getVersion", "{}"); !strings.Contains(got, "Chrome") {
		t.Error(got)
	}
}
