package browsertest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image/jpeg"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
)

// viewer is a person who watches.
type viewer struct {
	t     *testing.T
	ws    *websocket.Conn
	state api.ViewEvent // what was last told of who drives
}

func (s *site) viewer(t *testing.T, token, body string) *viewer {
	t.Helper()
	ws, status := dial(t, s.ticket(t, token, "view", body), nil)
	if ws == nil {
		t.Fatal(status)
	}
	return &viewer{t: t, ws: ws}
}

// next returns the next event, and its picture if it has one.
func (v *viewer) next() (e *api.ViewEvent, picture []byte) {
	v.t.Helper()
	for {
		if e, picture = v.nextMessage(); e.Type != api.ViewState {
			return e, picture
		}
		v.state = *e
	}
}

func (v *viewer) nextMessage() (*api.ViewEvent, []byte) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), patience)
	defer cancel()
	var e api.ViewEvent
	_, data, err := v.ws.Read(ctx)
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	if err == nil && e.Type == api.ViewFrame {
		_, data, err = v.ws.Read(ctx)
	}
	if err != nil {
		v.t.Fatal(err)
	}
	return &e, data
}

// ask sends input and returns what the viewer is told, other than pictures.
func (v *viewer) ask(input string) *api.ViewEvent {
	v.t.Helper()
	v.send(input)
	for {
		if e, _ := v.next(); e.Type != api.ViewFrame {
			return e
		}
	}
}

func (v *viewer) send(input string) {
	v.t.Helper()
	if err := v.ws.Write(v.t.Context(), websocket.MessageText, []byte(input)); err != nil {
		v.t.Fatal(err)
	}
}

// waitState reads until the viewer was told of a state.
func (v *viewer) waitState(is func(*api.ViewEvent) bool) {
	v.t.Helper()
	for !is(&v.state) {
		if e, _ := v.nextMessage(); e.Type == api.ViewState {
			v.state = *e
		}
	}
}

// openShop opens the shop in a new tab, and returns the program and its session.
func (s *site) openShop(t *testing.T) (p *program, session, target string) {
	t.Helper()
	p = s.program(t, "operator")
	target = member(t, p.call("", "Target.createTarget", `{"url":"http://shop.example/"}`), "targetId")
	t.Cleanup(func() { _ = p.ws.CloseNow() })
	return p, member(t, p.call("", "Target.attachToTarget", `{"flatten":true,"targetId":"`+target+`"}`), "sessionId"), target
}

// testView checks that a viewer sees the page and can do nothing.
func (s *site) testView(t *testing.T) {
	_, _, tab := s.openShop(t)
	v := s.viewer(t, "run", `{"tab":"`+tab+`"}`)
	e, picture := v.next()
	if config, err := jpeg.DecodeConfig(bytes.NewReader(picture)); err != nil || config.Width < 100 || e.Width < 100 || e.Height < 100 {
		t.Errorf("%+v, %+v, %v", e, config, err)
	}
	for _, input := range []string{`{"type":"take"}`, `{"type":"mouse","event":"down","x":5,"y":5,"button":"left"}`, `{"type":"text","text":"x"}`} {
		if got := v.ask(input); got.Type != api.ViewRefused || !strings.Contains(got.Detail, "watching only") {
			t.Errorf("%s: %+v", input, got)
		}
	}
	s.ask(t, question{"run", http.MethodPost, "/" + s.name + "/view", `{"control":true}`}, http.StatusForbidden, nil)
	s.ask(t, question{"other", http.MethodPost, "/" + s.name + "/view", `{}`}, http.StatusNotFound, nil)
}

// testControl checks that one person at a time drives, after taking the browser over.
func (s *site) testControl(t *testing.T) {
	p, session, tab := s.openShop(t)
	v, second := s.viewer(t, "operator", `{"control":true,"tab":"`+tab+`"}`), s.viewer(t, "all", `{"control":true}`)
	click := `{"type":"mouse","event":"%","x":100,"y":300,"button":"left","clicks":1}`
	if e, _ := v.next(); e.Type != api.ViewFrame {
		t.Fatalf("%+v", e)
	}
	if got := v.ask(strings.Replace(click, "%", "down", 1)); got.Type != api.ViewRefused {
		t.Errorf("before taking over: %+v", got)
	}
	if got := v.ask(`{"type":"take"}`); got.Type != api.ViewTaken {
		t.Fatalf("%+v", got)
	}
	if got := second.ask(`{"type":"take"}`); got.Type != api.ViewRefused || !strings.Contains(got.Detail, "a person has the browser") {
		t.Errorf("%+v", got)
	}
	v.waitState(func(e *api.ViewEvent) bool {
		return e.Driver == api.DriverYou && e.Control && e.URL == "http://shop.example/" && e.Title == "Shop"
	})
	second.waitState(func(e *api.ViewEvent) bool { return e.Driver == api.DriverPerson })
	var list api.Browsers
	if s.ask(t, question{"read", http.MethodGet, "", ""}, http.StatusOK, &list); !isTaken(list, s.name) {
		t.Errorf("%+v", list)
	}
	for _, bad := range []string{`{"type":"mouse","event":"down","x":-1,"y":5}`, `{"type":"key","event":"down","key":"F12"}`, `{"type":"fly"}`, `{"type":"text","text":""}`} {
		if got := v.ask(bad); got.Type != api.ViewRefused {
			t.Errorf("%s: %+v", bad, got)
		}
	}
	clicked := false
	for end := time.Now().Add(patience); !clicked && time.Now().Before(end); {
		v.send(strings.Replace(click, "%", "down", 1))
		v.send(strings.Replace(click, "%", "up", 1))
		clicked = strings.Contains(p.call(session, "Runtime.evaluate", `{"expression":"document.title"}`), "clicked")
	}
	if !clicked {
		t.Error("the click did not arrive")
	}
	for got := v.ask(`{"type":"release"}`); got.Type != api.ViewReleased; {
		got, _ = v.next() // pictures, and refusals of clicks before the page was there
	}
	if got := second.ask(`{"type":"take"}`); got.Type != api.ViewTaken {
		t.Errorf("%+v", got)
	}
	_ = second.ws.CloseNow()
	waitFor(t, func() bool {
		list = api.Browsers{} // what an answer leaves out would stay
		s.ask(t, question{"read", http.MethodGet, "", ""}, http.StatusOK, &list)
		return !isTaken(list, s.name)
	})
}

func isTaken(list api.Browsers, name string) bool {
	for _, b := range list.Browsers {
		if b.Name == name {
			return b.Person
		}
	}
	return false
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

// testViewers checks that a hundred may watch, that one of them which does not read delays
// none of the others, and that one more is refused.
func (s *site) testViewers(t *testing.T) {
	waitFor(t, func() bool { return s.viewers(t) == 0 })
	p, session, tab := s.openShop(t)
	urls := make([]string, 100)
	for i := range urls {
		urls[i] = s.ticket(t, []string{"operator", "all"}[i%2], "view", `{"tab":"`+tab+`"}`)
	}
	more := s.ticket(t, "run", "view", `{}`)
	var all sync.WaitGroup
	list := make([]*viewer, len(urls))
	for i, url := range urls {
		all.Go(func() {
			if ws, _ := dial(t, url, nil); ws != nil {
				list[i] = &viewer{t: t, ws: ws}
			}
		})
	}
	all.Wait()
	if got := s.viewers(t); got != 100 {
		t.Fatalf("%d watch", got)
	}
	if _, status := dial(t, more, nil); status != http.StatusServiceUnavailable {
		t.Error(status)
	}
	reader := list[7] // the others do not read
	// Changes that follow each other closely may be in one frame, so they do not end.
	p.call(session, "Runtime.evaluate", `{"expression":"setInterval(() => { document.body.style.background = '#' + Math.floor(Math.random() * 900 + 100) }, 100)"}`)
	for range 5 {
		if e, _ := reader.next(); e.Type != api.ViewFrame {
			t.Errorf("%+v", e)
		}
	}
}

func (s *site) viewers(t *testing.T) int {
	t.Helper()
	var list api.Browsers
	s.ask(t, question{"read", http.MethodGet, "", ""}, http.StatusOK, &list)
	for _, b := range list.Browsers {
		if b.Name == s.name {
			return b.Viewers
		}
	}
	return -1
}
