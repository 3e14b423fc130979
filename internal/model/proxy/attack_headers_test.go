package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// once checks that the upstream saw a header exactly once, with this value.
func once(t *testing.T, q *seen, name, want string) {
	t.Helper()
	if got := q.Header.Values(name); len(got) != 1 || got[0] != want {
		t.Errorf("the upstream saw %s %q, want %q once", name, got, want)
	}
}

func TestAttack01_BillingSpoof(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	p.post(chatPath, hello, "x-litellm-customer-id: victim", "X-LITELLM-End-User-Id: victim", "x-litellm-end-user-id: victim2", "x_litellm_customer_id: victim",
		"x-litellm-spend-logs-metadata: {\"run_id\":\"victim\"}", "x-litellm-tags: victim", "x-cogni-run-id: victim", "x-litellm-session-id: victim",
		"x-claude-code-session-id: victim", "openai-organization: victim").want(t, 200)
	q := m.only(t)
	once(t, &q, "X-Litellm-End-User-Id", "account-1")
	once(t, &q, "X-Cogni-Run-Id", "run-1")
	if all := fmt.Sprint(q.Header); strings.Contains(all, "victim") || len(q.Header.Values("X-Litellm-Spend-Logs-Metadata")) != 1 {
		t.Errorf("the upstream saw %s", all)
	}
	if p.spent("victim").Calls != 0 || p.spent("run-1").Calls != 1 {
		t.Error("another run was charged")
	}
}

func TestAttack02_HopByHopDeletion(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	p.post(chatPath, hello, "Connection: Authorization, X-Litellm-End-User-Id, keep-alive", "Connection: x-cogni-run-id", "Keep-Alive: x", "TE: trailers").want(t, 200)
	q := m.only(t)
	once(t, &q, "Authorization", "Bearer "+theKey)
	once(t, &q, "X-Litellm-End-User-Id", "account-1")
	once(t, &q, "X-Cogni-Run-Id", "run-1")
	if q.Header.Get("Te") != "" || q.Header.Get("Keep-Alive") != "" {
		t.Error("headers of the caller's connection went on")
	}
}

func TestAttack03_AlternateCredentials(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	var lines []string
	for _, name := range []string{"x-api-key", "api-key", "x-goog-api-key", "Ocp-Apim-Subscription-Key", "x-litellm-api-key", "Proxy-Authorization", "Cookie", "Authorization", "x-mcp-auth"} {
		lines = append(lines, name+": STOLEN")
	}
	p.post(chatPath+"?key=STOLEN&api-key=STOLEN", hello, lines...).want(t, 200)
	q := m.only(t)
	once(t, &q, "Authorization", "Bearer "+theKey)
	if strings.Contains(fmt.Sprint(q), "STOLEN") {
		t.Errorf("the upstream saw %v", q)
	}
}

func TestAttack04_PathEscape(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	for _, path := range []string{
		"/v1/../key/generate", "/v1/%2e%2e/key/generate", "/v1/..%2fkey", "//v1/chat/completions", "/v1//../x", "/v1/x%00", `/v1/\..\x`, "/v1/.;/..;/x",
		"/V1/chat/completions", "/v1/chat/completions/", "/v1/chat/completions/.", "/v1/chat%2fcompletions", "/v1/chat/completions;x", "/v1/./chat/completions",
		"/v1/chat/completions%20", "/v1/%63hat/completions", "http://169.254.169.254/v1/chat/completions", "http://localhost:8080/v1/chat/completions", "*",
		"/key/generate", "/", "v1/chat/completions", "/v1/chat/completions#x",
	} {
		a := p.post(path, hello)
		if a.err != nil || a.StatusCode != 404 && a.StatusCode != 400 {
			t.Errorf("%s: %v %s", path, a.err, a.body)
		}
	}
	if n := len(m.asked()); n != 0 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

func TestAttack05_RouteAbuse(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	for _, r := range []string{
		"GET /v1/files", "POST /v1/files", "POST /v1/batches", "POST /v1/containers", "POST /v1/search", "GET /v1/vector_stores", "GET /v1/realtime",
		"GET /v1/responses/resp_1", "DELETE /v1/responses/resp_1", "POST /v1/responses/resp_1/cancel", "GET /v1/model/info", "POST /v1/models", "DELETE /v1/models",
		"GET /v1/chat/completions", "PUT /v1/chat/completions", "GET /spend/logs", "POST /key/generate", "POST /health", "GET /health/readiness", "GET /v1/embeddings", "POST /v1/moderations",
		"POST /v1/completions", "GET /metrics", "GET /", "PATCH /v1/messages", "get /v1/models",
	} {
		method, path, _ := strings.Cut(r, " ")
		if a := p.raw(request(method, path, hello)); a.err != nil || a.StatusCode != 404 {
			t.Errorf("%s: %v %s", r, a.err, a.body)
		}
	}
	if n := len(m.asked()); n != 0 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

func TestAttack13_OtherProtocols(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	for _, raw := range []string{
		"GET /v1/realtime HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n",
		"GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"TRACE /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", "POST /v1/chat/completions HTTP/1.0\r\nHost: x\r\n\r\n", "GET /v1/models HTTP/0.9\r\n\r\n",
	} {
		conn := p.dial()
		_, _ = io.WriteString(conn, raw)
		r := bufio.NewReader(conn)
		a := readAnswer(r, "GET")
		if a.err != nil || a.StatusCode < 400 || a.StatusCode == 101 {
			t.Errorf("%.40q: %v", raw, a.err)
			continue
		}
		if strings.HasPrefix(raw, "TRACE") {
			continue // an ordinary request that is not served
		}
		if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("%.40q: the connection goes on: %v", raw, err)
		}
	}
	if n := len(m.asked()); n != 0 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

func TestAttack14_Smuggling(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	const line, host, evil = "POST /v1/chat/completions HTTP/1.1\r\n", "Host: x\r\n", "GET /v1/models HTTP/1.1\r\nHost: smuggled\r\n\r\n"
	for name, raw := range map[string]string{
		"CL+TE":            line + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
		"TE+CL":            line + host + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + evil,
		"two CL":           line + host + "Content-Length: 0\r\nContent-Length: 60\r\n\r\n" + evil,
		"signed CL":        line + host + "Content-Length: +2\r\n\r\n{}" + evil,
		"obs-fold":         line + host + "X-A: b\r\n Content-Length: 60\r\n\r\n" + evil,
		"bare LF":          line + "Host: x\nContent-Length: 60\r\n\r\n" + evil,
		"xchunked":         line + host + "Transfer-Encoding: xchunked\r\n\r\n" + evil,
		"space":            line + host + "Content-Length : 60\r\n\r\n" + evil,
		"two hosts":        line + host + "Host: y\r\nContent-Length: 0\r\n\r\n" + evil,
		"chunk extensions": line + host + "Transfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("x", 1<<20) + "\r\n{}\r\n0\r\n\r\n" + evil,
		"trailers":         line + host + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Litellm-End-User-Id: victim\r\n\r\n" + evil,
	} {
		conn := p.dial()
		go func() { _, _ = io.WriteString(conn, raw) }()
		r := bufio.NewReader(conn)
		if a := readAnswer(r, "POST"); a.err != nil || a.StatusCode != 400 && a.StatusCode != 501 {
			t.Errorf("%s: %v", name, a.err)
		}
		if rest, _ := io.ReadAll(r); len(rest) > 0 {
			t.Errorf("%s: what followed was served: %.80q", name, rest)
		}
	}
	if n := len(m.asked()); n != 0 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

func TestAttack16_HeaderInjectionFromOurOwnNames(t *testing.T) {
	m := newModel(t, chat(1))
	for name, change := range map[string]func(*grant.Terms){
		"line end in the run":     func(x *grant.Terms) { x.Run = "r\r\nx-litellm-end-user-id: victim" },
		"quote in the account":    func(x *grant.Terms) { x.Account = `a"b` },
		"non-ASCII in the run":    func(x *grant.Terms) { x.Run = "läuft" },
		"list in the account":     func(x *grant.Terms) { x.Account = "a,b" },
		"account that is too big": func(x *grant.Terms) { x.Account = strings.Repeat("a", 300) },
	} {
		bad := terms()
		change(bad)
		if _, err := proxy.NewCaller(bad, nil); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	odd := terms()
	odd.Session, odd.Trace = "a\"b\\c\r\nx: y\u2028ü", "\U0001F600"
	p := newProxy(t, m.URL, nil).listen(odd)
	p.post(chatPath, hello).want(t, 200)
	q := m.only(t)
	metadata := q.Header.Get("X-Litellm-Spend-Logs-Metadata")
	if !strings.Contains(metadata, `"session_id":"a\"b\\c\u000d\u000ax: y\u2028\u00fc"`) || !strings.Contains(metadata, `\ud83d\ude00`) || q.Header.Get("X") != "" {
		t.Errorf("metadata %s", metadata)
	}
}

func TestAttack18_KeyDisclosure(t *testing.T) {
	var reply func(w http.ResponseWriter, r *http.Request)
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) { reply(w, r) })
	p := newProxy(t, m.URL, nil).listen(terms())
	clean := func(name string, a answer) {
		t.Helper()
		all := fmt.Sprint(a.Header) + a.body
		if a.err != nil || strings.Contains(all, theKey) || strings.Contains(all, "10.0.0.7") || strings.Contains(strings.ToLower(all), "litellm") {
			t.Errorf("%s: %v %.300s", name, a.err, all)
		}
	}
	reply = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Litellm-Key-Spend", "1")
		w.Header().Set("X-Litellm-Model-Api-Base", "http://10.0.0.7")
		w.Header().Set("Llm_provider-X", "y")
		w.Header().Set("X-Ratelimit-Reset", theKey)
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"error":{"message":"you sent %s"}}`, r.Header.Get("Authorization"))
	}
	clean("an error that echoes the key", p.post(chatPath, hello))
	reply = func(w http.ResponseWriter, _ *http.Request) {
		http.Redirect(w, &http.Request{}, "http://10.0.0.7/x", http.StatusFound)
	}
	a := p.post(chatPath, hello)
	clean("a redirect", a)
	a.want(t, 502)
	reply = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(500)
		fmt.Fprint(w, "<html>http://10.0.0.7:4000/internal</html>")
	}
	clean("a page", p.post(chatPath, hello))
	reply = func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"%s"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, r.Header.Get("Authorization"))
	}
	clean("an answer that echoes the key", p.post(chatPath, hello))
	reply = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"%s\"}}]}\n\n", r.Header.Get("Authorization"))
	}
	clean("a stream that echoes the key", p.post(chatPath, helloStream))
	reply = func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(401)
		fmt.Fprintf(w, `{"error":{"message":"LiteLLM: key %s is wrong"}}`, r.Header.Get("Authorization"))
	}
	clean("a refusal of the key", p.post(chatPath, hello))
	p.stop()
	if strings.Contains(p.auditText()+p.logged.String(), theKey) {
		t.Error("the key is in the records or in the log")
	}
}

func TestAttack21_SharedModeAnotherSessionsHeaders(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil)
	sessions := map[string]*grant.Terms{"atoll_A": terms(), "atoll_B": terms(), "atoll_open": terms()}
	sessions["atoll_B"].Account, sessions["atoll_B"].Run = "account-b", "run-b"
	sessions["atoll_open"].Run, sessions["atoll_open"].Trace = "", ""
	p.socket = p.serve(proxy.AuthenticateByToken(func(_ context.Context, token string) (*grant.Terms, error) {
		if found := sessions[token]; found != nil {
			return found, nil
		}
		return nil, errors.New("unknown")
	}, func(*grant.Terms) []usage.Limit { return nil }))
	others := []string{"x-litellm-end-user-id: account-b", "x-cogni-run-id: run-b", `x-litellm-spend-logs-metadata: {"run_id":"run-b","existing_trace_id":"trace-b"}`}
	for _, credential := range []string{"Authorization: Bearer atoll_X", "X-Other: atoll_A", "Authorization: Basic atoll_A", "Authorization: Bearer " + theKey} {
		p.post(chatPath, hello, append(others, credential)...).want(t, 401, "invalid_token")
	}
	if len(m.asked()) != 0 {
		t.Fatal("the upstream was asked without a token")
	}
	for _, credential := range []string{"Authorization: Bearer atoll_A", "x-api-key: atoll_A", "X-Atoll-Token: atoll_A"} {
		p.post(chatPath, hello, append(others, credential)...).want(t, 200)
	}
	p.post(chatPath, hello, append(others, "Authorization: Bearer atoll_open")...).want(t, 200)
	asks := m.asked()
	for i, q := range asks {
		once(t, &q, "X-Litellm-End-User-Id", "account-1")
		if i < 3 {
			once(t, &q, "X-Cogni-Run-Id", "run-1")
		} else {
			once(t, &q, "X-Cogni-Run-Id", "run-b") // the token leaves it open
		}
		if strings.Contains(fmt.Sprint(q.Header), "atoll_A") {
			t.Errorf("the token went on: %v", q.Header)
		}
	}
}

// In shared mode too, each caller has the budgets of its own agent.
func TestTokensHaveTheBudgetsOfTheirAgents(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil)
	verify := func(_ context.Context, token string) (*grant.Terms, error) {
		found := terms()
		found.Agent = strings.TrimPrefix(token, "atoll_")
		return found, nil
	}
	p.socket = p.serve(proxy.AuthenticateByToken(verify, func(t *grant.Terms) []usage.Limit {
		if t.Agent == "poor" {
			return []usage.Limit{{Scope: usage.ScopeAgent, Tokens: 1}}
		}
		return nil
	}))
	p.post(chatPath, hello, "Authorization: Bearer atoll_rich").want(t, 200)
	p.post(chatPath, hello, "Authorization: Bearer atoll_poor").want(t, 402)
}
