package live_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/live"
)

func TestSnapshotThenDeltas(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.source.set("runs a", "1")
	c := s.as(s.token("acme"))
	c.subscribe(live.TopicRuns, 0)
	first := c.next()
	is(t, first, api.LiveSnapshot, "runs a")
	s.source.set("runs b", "1")
	s.handler.Changed(live.TopicRuns)
	second := c.next()
	is(t, second, api.LiveDelta, "runs b")
	s.source.set("runs a", "")
	s.handler.Changed(live.TopicRuns)
	third := c.next()
	is(t, third, api.LiveDelta, "-runs a")
	if second.Seq != first.Seq+1 || third.Seq != second.Seq+1 {
		t.Errorf("%d, %d, %d", first.Seq, second.Seq, third.Seq)
	}
	again := s.as(s.token("acme"))
	again.subscribe(live.TopicRuns, first.Seq)
	is(t, again.next(), api.LiveDelta, "runs b")
	is(t, again.next(), api.LiveDelta, "-runs a")
	again.subscribe(live.TopicRuns, 12345)
	is(t, again.next(), api.LiveSnapshot, "runs b")
}

// Callers of an account share what is read, and others see nothing of it.
func TestTopicsOfOneAccount(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.source.set("runs a", "1")
	token := s.token("acme")
	for range 5 {
		c := s.as(token)
		c.subscribe(live.TopicRuns, 0)
		is(t, c.next(), api.LiveSnapshot, "runs a")
	}
	if s.source.mu.Lock(); s.source.reads > 2 {
		t.Errorf("read %d times", s.source.reads)
	}
	s.source.mu.Unlock()
	other := s.as(s.token("other"))
	other.subscribe(live.TopicRuns, 0)
	is(t, other.next(), api.LiveSnapshot)
	for _, topic := range []string{"run:r1", "run:none", "session:x"} {
		other.subscribe(topic, 0)
		if m := other.next(); m.Type != api.LiveProblem || m.Topic != topic || m.Problem.Status != http.StatusNotFound || m.Problem.Detail != errNone.Error() {
			t.Errorf("%s: %+v", topic, m)
		}
	}
}

func TestRunAndItsEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.source.happen(2, "x")
	c := s.as(s.token("acme"))
	c.subscribe("run:r1", 0)
	m := c.next()
	is(t, m, api.LiveSnapshot, "run")
	if len(m.Events) != 2 || m.Seq != 2 {
		t.Fatalf("%+v", m)
	}
	s.source.happen(1, "y")
	if m := c.next(); m.Type != api.LiveDelta || len(m.Keys) != 0 || len(m.Events) != 1 || m.Seq != 3 {
		t.Errorf("%+v", m)
	}
	again := s.as(s.token("acme"))
	again.subscribe("run:r1", 2)
	if m := again.next(); m.Type != api.LiveDelta || len(m.Events) != 1 || m.Events[0].Text != "y" {
		t.Errorf("%+v", m)
	}
}

// A page that comes with its cookie alone has to send its secret soon.
func TestLogInWithinTheFirstMessage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.source.set("runs a", "1")
	login, secrets, err := s.access.LogInWithToken(t.Context(), access.Remote(&http.Request{RemoteAddr: "192.0.2.1:1"}), s.token("acme"))
	if err != nil {
		t.Fatal(err)
	}
	origin := "http" + strings.TrimPrefix(strings.TrimSuffix(s.url, live.Path), "ws")
	with := []string{"Cookie", cookieName + "=" + secrets.Cookie.Reveal(), "Origin", origin}
	c := s.dial(with...)
	c.send(api.LiveRequest{Type: api.LiveLogIn, Page: secrets.Page.Reveal()})
	if m := c.next(); m.Type != api.LiveReady {
		t.Fatalf("%+v", m)
	}
	c.subscribe(live.TopicRuns, 0)
	is(t, c.next(), api.LiveSnapshot, "runs a")
	for name, first := range map[string]string{
		"nothing": "", "another secret": `{"type":"login","page":"` + strings.Repeat("a", len(secrets.Page.Reveal())) + `"}`, "no log-in": `{"type":"subscribe","topic":"runs"}`, "garbage": "{",
	} {
		c := s.dial(with...)
		if first != "" {
			c.send(first)
		}
		if m, err := c.read(); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for name, header := range map[string][]string{"no origin": with[:2], "nothing": nil, "a wrong token": {"Authorization", "Bearer x"}, "another origin": {with[0], with[1], "Origin", "https://evil.example"}} {
		if ws, response, err := s.try(header...); err == nil || response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %v, %+v", name, ws, response)
		}
	}
	if err := s.access.Web.End(t.Context(), login.ID); err != nil {
		t.Fatal(err)
	}
	c.closed()
}

func TestTooManyTopics(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.as(s.token("acme"))
	for i := range live.MaxTopics + 1 {
		c.subscribe(fmt.Sprintf("run:r%d", i+100), 0)
	}
	refused := 0
	for range live.MaxTopics + 1 {
		if m := c.next(); m.Type == api.LiveProblem && m.Problem.Code == "too_many_topics" {
			refused++
		}
	}
	if refused > 1 { // those that are not found make room
		t.Errorf("%d were refused", refused)
	}
	flood := s.as(s.token("acme"))
	go func() {
		for i := range 10_000 {
			text := fmt.Sprintf(`{"type":"subscribe","topic":"session:%d"}`, i)
			if flood.ws.Write(t.Context(), websocket.MessageText, []byte(text)) != nil {
				return
			}
		}
	}()
	if status := flood.closed(); status != websocket.StatusPolicyViolation {
		t.Errorf("10,000 topics: %v", status)
	}
}

func TestGarbage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	token := s.token("acme")
	for _, text := range []string{"", "{", "[]", `"x"`, `{"type":"shout"}`, `{"type":1}`, strings.Repeat("[", 4000), strings.Repeat("x", 5000)} {
		c := s.as(token)
		c.send(text)
		if status := c.closed(); status != websocket.StatusUnsupportedData && status != websocket.StatusMessageTooBig {
			t.Errorf("%.20q: %v", text, status)
		}
	}
	c := s.as(token)
	if err := c.ws.Write(t.Context(), websocket.MessageBinary, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if status := c.closed(); status != websocket.StatusUnsupportedData {
		t.Errorf("binary: %v", status)
	}
	still := s.as(token)
	for _, topic := range []string{"", "runs ", "RUNS", "run:", "session:", "../runs", strings.Repeat("x", 300), "run:\x00"} {
		still.subscribe(topic, -5)
		if m := still.next(); m.Type != api.LiveProblem || m.Problem.Status != http.StatusNotFound {
			t.Errorf("%q: %+v", topic, m)
		}
	}
}

// A client that takes nothing costs nothing, and gets a snapshot when it reads again.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.as(s.token("acme"))
	c.subscribe(live.TopicRuns, 0)
	is(t, c.next(), api.LiveSnapshot)
	large := strings.Repeat("x", 256<<10)
	for i := range 100 { // far above what is kept and what sockets hold
		s.source.set("runs big", fmt.Sprint(i)+large)
		s.handler.Changed(live.TopicRuns)
		time.Sleep(210 * time.Millisecond / 10)
	}
	s.source.set("runs last", "1")
	s.handler.Changed(live.TopicRuns)
	for n := 0; ; n++ {
		if slices.Contains(c.next().Keys, "runs last") {
			return
		}
		if n > 100 {
			t.Fatal("the newest did not come")
		}
	}
}

func TestConnectionsOfOneToken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	token := s.token("acme")
	for range live.MaxConnections {
		s.as(token)
	}
	if status := s.dial("Authorization", "Bearer "+token).closed(); status != websocket.StatusTryAgainLater {
		t.Errorf("%v", status)
	}
}
