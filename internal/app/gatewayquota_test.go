package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	sessions "github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// The sandboxes of a token's account are counted where they are made: however many
// sessions ask at once, no more are made, and one that has its sandbox keeps it.
// Seen to fail with holdRoom left out of ProvidePair.
func TestQuotaOfSandboxes(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	s.set("agents.defaults.sandbox.scope", "session")
	o, _ := s.hire()
	const most, asked = 2, 6
	quota := sessions.Quota{Sandboxes: most}
	for i := range asked {
		o.ask(ann, sessions.Task{ID: fmt.Sprint("t", i), Key: fmt.Sprint("s", i), Message: "x", Quota: quota})
	}
	var done []int
	for i := range asked {
		switch rec := o.over(ann, fmt.Sprint("t", i)); {
		case rec.State == sessions.Done:
			done = append(done, i)
		case rec.Code != "quota_exceeded" || !strings.Contains(rec.Problem, "sandboxes are alive"):
			t.Errorf("%+v", rec)
		}
	}
	if len(done) != most {
		t.Fatalf("%v were done", done)
	}
	o.ask(ann, sessions.Task{ID: "again", Key: fmt.Sprint("s", done[0]), Message: "x", Quota: quota})
	o.ask(bob, sessions.Task{ID: "other", Key: "s", Message: "x", Quota: quota})
	for id, v := range map[string]sessions.View{"again": ann, "other": bob} {
		if rec := o.over(v, id); rec.State != sessions.Done {
			t.Errorf("%s: %+v", id, rec)
		}
	}
}

// The day's money of a token's account ends a task in the middle of its work.
// Seen to fail with Day left out of the worker's options.
func TestQuotaOfMoneyMidway(t *testing.T) {
	t.Parallel()
	var script []fakellm.Turn
	for range 40 {
		script = append(script, fakellm.Use("exec", `{"command": "true"}`))
	}
	s, _ := gatewaySite(t, append(script, fakellm.Say("done"))...)
	o, _ := s.hire()
	const most = 20_000 // micro-dollars: some calls of some 2,000
	o.ask(ann, sessions.Task{ID: "t", Key: "main", Message: "x", Quota: sessions.Quota{MicroUSD: most}})
	rec := o.over(ann, "t")
	if rec.State != sessions.Failed || rec.Code != "budget_exceeded" || rec.MicroUSD == 0 || rec.MicroUSD > most || rec.Report == nil || rec.Report.Calls == 0 {
		t.Errorf("%+v %+v", rec, rec.Report)
	}
	o.ask(bob, sessions.Task{ID: "t", Key: "main", Message: "x", Quota: sessions.Quota{MicroUSD: 100 * most}})
	if rec := o.over(bob, "t"); rec.State != sessions.Done {
		t.Errorf("another's day: %+v", rec)
	}
}

// What a token may take holds on every way in: a task over WebSocket is counted as
// one over HTTP is.
func TestGatewayQuotas(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	s.set("agents.defaults.sandbox.scope", "session")
	g := s.gateway(time.Minute)
	text, _, err := serve.Tokens(s.open().Installation).Create(t.Context(), access.Spec{Scope: access.Run, Account: "ann", Quota: access.Quota{Sandboxes: 1}})
	if err != nil {
		t.Fatal(err)
	}
	overHTTP, err := client.New(client.Options{URL: "http://" + g.address, Token: text.Reveal()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(overHTTP.Close)
	send := func(key string) *api.Task {
		task, err := overHTTP.Send(t.Context(), key, &api.SendRequest{Message: "x"}, "")
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	if task := send("first"); task.State != "done" {
		t.Fatalf("%+v", task)
	}
	if task := send("second"); task.Error == nil || task.Error.Code != "quota_exceeded" {
		t.Errorf("%+v", task)
	}
	c := protocol.NewClient(protocol.ClientOptions{URL: "ws://" + g.address, Scopes: []string{"operator.read", "operator.write"}, Token: func(context.Context) (string, error) { return text.Reveal(), nil }})
	t.Cleanup(c.Close)
	for key, want := range map[string]string{"first": "ok", "third": "error"} {
		var waited struct{ Status, Error string }
		id := "ws-" + key
		if err := c.Call(t.Context(), "chat.send", map[string]any{"sessionKey": key, "message": "x", "idempotencyKey": id}, nil); err != nil {
			t.Fatal(err)
		}
		err := c.Call(t.Context(), "agent.wait", map[string]any{"runId": id, "timeoutMs": 60000}, &waited)
		if err != nil || waited.Status != want || want == "error" && !strings.Contains(waited.Error, "1 of 1 sandboxes") {
			t.Errorf("%s: %+v, %v", key, waited, err)
		}
	}
}

// A key that stands in the configuration itself is taken over by a reload, and the
// next call is made with it.
func TestReloadTakesLiteralKeys(t *testing.T) {
	t.Parallel()
	model, err := fakellm.Listen(t.Context(), "tcp", "127.0.0.1:0", fakellm.Script{fakellm.Say("done")})
	if err != nil {
		t.Fatal(err)
	}
	model.BeginAnew()
	t.Cleanup(func() { _ = model.Close() })
	var seen atomic.Value
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		seen.Store(r.In.Header.Get("Authorization"))
		r.SetURL(&url.URL{Scheme: "http", Host: model.Addr().String()})
	}}
	upstream := httptest.NewServer(http.Handler(proxy))
	t.Cleanup(upstream.Close)
	s := linuxSite(t)
	provider := func(key string) map[string]any {
		return map[string]any{"api": "openai-completions", "baseUrl": upstream.URL + "/v1", "apiKey": key, "models": []any{map[string]any{"id": "m", "name": "M"}}}
	}
	s.set("models.providers.own", provider("first-key-0123456789"))
	s.set("agents.defaults.model", "own/m")
	g, a := s.gatewayHere()
	ask := func(want string) {
		t.Helper()
		if task, err := g.Send(t.Context(), "main", &api.SendRequest{Message: "x"}, ""); err != nil || task.State != "done" || seen.Load() != "Bearer "+want {
			t.Errorf("%+v, %v: asked with %v", task, err, seen.Load())
		}
	}
	ask("first-key-0123456789")
	s.set("models.providers.own", provider("second-key-0123456789"))
	settings, err := provide.Load(provide.LoadOptions{Getenv: s.getenv, ConfigPath: s.configFile()})
	if err != nil {
		t.Fatal(err)
	}
	report, err := a.Reload(t.Context(), settings)
	if err != nil || len(report.Restart) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
	ask("second-key-0123456789")
}

// gatewayHere is a gateway of this process, served, and a client of its owner.
func (s *site) gatewayHere() (*client.Client, *serve.Gateway) {
	s.t.Helper()
	a := s.open()
	ctx, stop := context.WithCancel(s.t.Context())
	g, err := serve.Open(ctx, a.Parts(), serve.Options{Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		s.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(ctx) }()
	c, err := client.New(client.Options{Socket: filepath.Join(s.state, serve.Socket)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(sync.OnceFunc(func() {
		c.Close()
		stop()
		if err := <-served; err != nil {
			s.t.Error(err)
		}
	}))
	return c, g
}
