package proxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/model/proxy"
)

// everyRoute is what is served beyond lists and health, and what it is charged.
var everyRoute = []struct {
	path, body string
	tokens     int64
	dialect    string
}{
	{"/chat/completions", hello, 18, "chat"},
	{"/messages", `{"model":"good","max_tokens":5,"messages":[]}`, 18, "messages"},
	{"/messages/count_tokens", `{"model":"good","messages":[]}`, 0, "messages"},
	{"/responses", `{"model":"good","input":"hi"}`, 18, "responses"},
	{"/responses/compact", `{"model":"good","input":"hi"}`, 18, "responses"},
	{"/embeddings", `{"model":"good","input":"hi"}`, 11, "embeddings"},
}

// TestEveryRouteIsServed asks all that the table of routes has, with and without
// the prefix. The upstream sees the same path both times, and each is charged what
// its own dialect says; counting is free.
func TestEveryRouteIsServed(t *testing.T) {
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "count_tokens"):
			fmt.Fprint(w, `{"input_tokens":11}`)
		case strings.HasSuffix(r.URL.Path, "completions"):
			fmt.Fprint(w, `{"model":"good-1","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7}}`)
		case strings.HasSuffix(r.URL.Path, "embeddings"):
			fmt.Fprint(w, `{"model":"good-1","data":[],"usage":{"prompt_tokens":11,"total_tokens":11}}`)
		default:
			fmt.Fprint(w, `{"model":"good-1","usage":{"input_tokens":11,"output_tokens":7}}`)
		}
	})
	p := newProxy(t, m.URL, nil)
	for i, route := range everyRoute {
		own := terms()
		own.Run = fmt.Sprint("run-", i)
		q := p.listen(own)
		q.post("/v1"+route.path, route.body).want(t, 200)
		q.post(route.path, route.body).want(t, 200)
		if c := q.spent(own.Run); c.Tokens.Total() != 2*route.tokens || c.Estimated != 0 {
			t.Errorf("%s: charged %+v", route.path, c)
		}
	}
	asked := m.asked()
	for i, route := range everyRoute {
		for _, q := range asked[2*i : 2*i+2] {
			if q.URI != "/v1"+route.path {
				t.Errorf("%s went to %s", route.path, q.URI)
			}
		}
	}
	for i, r := range p.records() {
		if want := everyRoute[i/2].dialect; r["dialect"] != want {
			t.Errorf("record %d is of %v, not of %s", i, r["dialect"], want)
		}
	}
}

// TestUpstreamsAreVerified: an upstream whose certificate no trusted authority signed, or
// which is of another name, is not told anything.
func TestUpstreamsAreVerified(t *testing.T) {
	var asked atomic.Int64
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		chat(1)(w, r)
	}))
	upstream.Config.ErrorLog = log.New(io.Discard, "", 0) // what it thinks of our refusal
	upstream.StartTLS()
	t.Cleanup(upstream.Close)
	known := x509.NewCertPool()
	known.AddCert(upstream.Certificate())
	otherName := strings.Replace(upstream.URL, "127.0.0.1", "localhost", 1)
	for name, test := range map[string]struct {
		url    string
		roots  *x509.CertPool
		status int
	}{
		"known":           {upstream.URL, known, 200},
		"of another name": {otherName, known, 502},
		"unknown":         {upstream.URL, nil, 502},
	} {
		before := asked.Load()
		p := newProxy(t, test.url, func(o *proxy.Options) {
			if test.roots != nil {
				o.Providers[0].Upstream.TLS = &tls.Config{RootCAs: test.roots}
			}
		}).listen(terms())
		p.post(chatPath, hello).want(t, test.status)
		p.stop()
		if told := asked.Load() > before; told != (test.status == 200) {
			t.Errorf("%s: the upstream was asked: %v", name, told)
		}
	}
}
