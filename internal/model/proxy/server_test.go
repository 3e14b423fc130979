package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/secret"
)

func TestAnAnswerIsBroughtCountedAndRecorded(t *testing.T) {
	m := newModel(t, chat(5))
	p := newProxy(t, m.URL, nil).listen(terms())
	p.post(chatPath, hello).want(t, 200, `"content":"hello"`)
	q := m.only(t)
	if q.Body != hello || q.URI != chatPath {
		t.Errorf("the upstream got %s %s", q.URI, q.Body)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer " + theKey, "X-Litellm-End-User-Id": "account-1", "X-Cogni-Run-Id": "run-1", "Accept-Encoding": "identity",
	} {
		if got := q.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	metadata := q.Header.Get("X-Litellm-Spend-Logs-Metadata")
	id := q.Header.Get("X-Litellm-Call-Id")
	if want := `{"run_id":"run-1","attempt":0,"graph_id":"sandbox:agent","session_id":"agent:main:main","existing_trace_id":"trace-1","req":"` + id + `"}`; metadata != want || id == "" {
		t.Errorf("metadata %s", metadata)
	}
	if c := p.spent("run-1"); c.Tokens.Input != 11 || c.Tokens.Output != 5 || c.MicroUSD != 61 {
		t.Errorf("charged %+v", c)
	}
	r := p.records()
	if len(r) != 1 || r[0]["id"] != id || r[0]["run"] != "run-1" || r[0]["model"] != "good-1" || r[0]["costMicroUSD"] != 61.0 {
		t.Errorf("recorded %v", r)
	}
}

func TestAStreamIsBroughtUnchanged(t *testing.T) {
	m := newModel(t, chat(50))
	p := newProxy(t, m.URL, nil).listen(terms())
	a := p.post(chatPath, helloStream)
	a.want(t, 200, `"content":"w0 "`, `"content":"w49 "`, "data: [DONE]\n\n")
	if strings.Contains(a.body, "prompt_tokens") {
		t.Error("the count that we asked for is seen by the caller, who did not")
	}
	if !strings.Contains(m.only(t).Body, `"stream_options":{"include_usage":true}`) {
		t.Error("the upstream was not asked to count")
	}
	b := p.post(chatPath, `{"model":"good","stream":true,"stream_options":{"include_usage":true},"messages":[]}`)
	b.want(t, 200, `"completion_tokens":50`)
	if c := p.spent("run-1"); c.Tokens.Output != 100 || c.Calls != 2 || c.Estimated != 0 {
		t.Errorf("charged %+v", c)
	}
}

func TestOneConnectionServesManyRequests(t *testing.T) {
	m := newModel(t, chat(3))
	p := newProxy(t, m.URL, nil).listen(terms())
	conn := p.dial()
	r := bufio.NewReader(conn)
	for i := range 20 {
		body, path := hello, chatPath
		switch i % 4 {
		case 1:
			body = helloStream
		case 2:
			path = "/nowhere"
		case 3:
			body = `{"model":"other"}`
		}
		if _, err := io.WriteString(conn, request("POST", path, body)); err != nil {
			t.Fatal(err)
		}
		readAnswer(r, "POST").want(t, []int{200, 200, 404, 403}[i%4])
	}
}

func TestHealthIsOurs(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	p.raw("GET /health HTTP/1.1\r\nHost: x\r\n\r\n").want(t, 200, `"status":"ok"`)
	conn := p.dial()
	_, _ = io.WriteString(conn, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
	if a := readAnswer(bufio.NewReader(conn), "HEAD"); a.err != nil || a.StatusCode != 200 {
		t.Errorf("HEAD /: %v", a.err)
	}
	if len(m.asked()) != 0 {
		t.Error("the upstream was asked")
	}
}

func TestModelsAreThoseThatMayBeCalled(t *testing.T) {
	m := newModel(t, chat(1))
	limits := terms()
	limits.Models = []string{"good", "team/*"}
	p := newProxy(t, m.URL, nil).listen(limits)
	for _, path := range []string{"/v1/models", "/v1/models?limit=1000", "/models"} {
		a := p.raw("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
		a.want(t, 200, `"id":"good"`, `"id":"team/one"`)
		if strings.Contains(a.body, "other") || strings.Contains(a.body, "secret") {
			t.Error(a.body)
		}
	}
}

func TestErrorsPassInTheirOwnWordsButForSecrets(t *testing.T) {
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(429)
		fmt.Fprint(w, `{"error":{"message":"slow down","type":"rate_limit_error","code":"429"}}`)
	})
	p := newProxy(t, m.URL, nil).listen(terms())
	a := p.post(chatPath, hello)
	a.want(t, 429, `{"error":{"message":"slow down","type":"rate_limit_error","code":"429"}}`)
	if a.Header.Get("Retry-After") != "7" {
		t.Error("Retry-After is lost")
	}
	if c := p.spent("run-1"); c.Tokens.Total() != 0 {
		t.Errorf("a refusal was charged: %+v", c)
	}
}

func TestAnotherKeyIsTriedWhenOneIsRefused(t *testing.T) {
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-second-key-0123456789" {
			w.WriteHeader(401)
			fmt.Fprintf(w, `{"error":{"message":"bad key %s"}}`, r.Header.Get("Authorization"))
			return
		}
		chat(1)(w, r)
	})
	pool, err := secret.NewPool(t.Context(), secret.PoolOptions{}, secret.Literal{Value: secret.New(theKey)}, secret.Literal{Value: secret.New("sk-second-key-0123456789")})
	must(t, err)
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.Providers[0].Keys = pool }).listen(terms())
	p.post(chatPath, hello).want(t, 200)
	p.post(chatPath, hello).want(t, 200)
	if n := len(m.asked()); n != 3 {
		t.Errorf("%d requests: the refused key was not left to rest", n)
	}
}

func TestAnUpstreamThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l.Close()
	p := newProxy(t, "http://"+l.Addr().String(), nil).listen(terms())
	a := p.post("/v1/messages", `{"model":"good","max_tokens":5,"messages":[]}`)
	a.want(t, 502, `"type":"error"`, `"api_error"`)
	if c := p.spent("run-1"); c.Calls != 0 {
		t.Errorf("charged %+v", c)
	}
}

func TestIdleUpstreamConnectionsThatClosedAreNotUsed(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	for range 5 {
		p.post(chatPath, hello).want(t, 200)
		m.CloseClientConnections()
	}
}

func TestSilentModelsAreWaitedForAndThenGivenUp(t *testing.T) {
	released := make(chan struct{})
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
		}
	})
	defer close(released)
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.Providers[0].Upstream.HeaderTimeout = 50 * time.Millisecond }).listen(terms())
	p.post(chatPath, hello).want(t, 504, "upstream_timeout")
}

func TestAnswersThatBreakOffAreToldInTheDialect(t *testing.T) {
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"good-1\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	p := newProxy(t, m.URL, nil).listen(terms())
	a := p.post("/v1/messages", `{"model":"good","max_tokens":5,"stream":true,"messages":[]}`)
	a.want(t, 200, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"")
	if c := p.spent("run-1"); c.Tokens.Input != 9 || c.Estimated != 1 {
		t.Errorf("charged %+v", c)
	}
}

func TestCloseEndsStreamsWithAWord(t *testing.T) {
	started := make(chan struct{}, 1)
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
		w.(http.Flusher).Flush()
		started <- struct{}{}
		<-r.Context().Done()
	})
	p := newProxy(t, m.URL, nil).listen(terms())
	idle := p.dial()
	result := make(chan answer, 1)
	conn := p.dial()
	_, _ = io.WriteString(conn, request("POST", chatPath, helloStream))
	go func() { result <- readAnswer(bufio.NewReader(conn), "POST") }()
	<-started
	p.stop()
	a := <-result
	a.want(t, 200, "shutting_down")
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("an idle connection: %v", err)
	}
}

func TestModelsAreAskedWhereTheyAre(t *testing.T) {
	ours, theirs := newModel(t, chat(1)), newModel(t, chat(1))
	limits := terms()
	limits.Models = []string{"good", "other"}
	p := newProxy(t, ours.URL, func(o *proxy.Options) {
		o.Providers = append(o.Providers, proxy.Provider{Upstream: proxy.Upstream{URL: theirs.URL, Header: "x-api-key", OmitIdentity: true}, Keys: o.Providers[0].Keys, Models: []string{"oth*"}})
	}).listen(limits)
	p.post(chatPath, hello).want(t, 200)
	p.post(chatPath, `{"model":"other"}`).want(t, 200)
	if len(ours.asked()) != 1 || len(theirs.asked()) != 1 {
		t.Fatalf("%d and %d requests", len(ours.asked()), len(theirs.asked()))
	}
	q := theirs.only(t)
	once(t, &q, "X-Api-Key", theKey)
	if all := fmt.Sprint(q.Header); strings.Contains(all, "account-1") || strings.Contains(all, "run-1") || q.Header.Get("Authorization") != "" {
		t.Errorf("a stranger was told %s", all)
	}
}

// A bearer token of a subscription needs a feature besides those that the caller asks for.
func TestBetaOfAProvider(t *testing.T) {
	for asked, want := range map[string]string{"": "oauth-1", "a-1, b-2": "a-1, b-2,oauth-1", "a-1,oauth-1": "a-1,oauth-1"} {
		m := newModel(t, chat(1))
		p := newProxy(t, m.URL, func(o *proxy.Options) { o.Providers[0].Upstream.Beta = "oauth-1" }).listen(terms())
		p.post(chatPath, hello, "anthropic-beta: "+asked).want(t, 200)
		q := m.only(t)
		once(t, &q, "Anthropic-Beta", want)
		once(t, &q, "Authorization", "Bearer "+theKey)
	}
}
