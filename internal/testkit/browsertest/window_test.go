package browsertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/testkit/browserimage"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// newWindowSite returns an installation whose browser has a window, on Docker.
func newWindowSite(t *testing.T) *site {
	t.Helper()
	s := &site{tokens: map[string]string{}, docker: enginetest.Docker(t)}
	proxy := serveShop(t)
	s.makeDir(t)
	s.openWith(t, `{}`)
	s.openWith(t, fmt.Sprintf(`{agents: {defaults: {workspace: %q, sandbox: {mode: "all", scope: "session", backend: "docker",
		browser: {cdp: "operator", headless: false, image: %q, containerPrefix: %q}, egress: {mode: "enforce", allow: ["shop.example:80"], upstream: %q}}},
		list: [{id: "main"}, {id: "closed", sandbox: {browser: {cdp: "off", headless: true}}}, {id: "far", sandbox: {browser: {cdpSourceRange: "192.0.2.0/24", headless: true}}}]}}`,
		filepath.Join(s.dir, "agent"), browserimage.Build(t, s.app), filepath.Base(s.dir)+"-", proxy))
	s.serve(t)
	s.makeTokens(t)
	s.start(t)
	return s
}

// window is a person who watches a window: a client of VNC.
type window struct {
	t      *testing.T
	ws     *websocket.Conn
	width  int
	height int
	rest   []byte
	told   []api.ViewEvent
}

// window opens the window of the browser and begins to speak VNC.
func (s *site) window(t *testing.T, token, body string) *window {
	t.Helper()
	ws, status := dial(t, s.ticket(t, token, "vnc", body), nil)
	if ws == nil {
		t.Fatal(status)
	}
	w := &window{t: t, ws: ws}
	w.hears("RFB 003.008\n")
	w.send("RFB 003.008\n")
	w.hears("\x01\x01")
	w.send("\x01")
	w.hears("\x00\x00\x00\x00")
	w.send("\x01")
	start := w.read(24)
	w.width, w.height = int(start[0])<<8|int(start[1]), int(start[2])<<8|int(start[3])
	w.read(int(start[22])<<8 | int(start[23]))
	return w
}

// next reads a message.
func (w *window) next() error {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	kind, data, err := w.ws.Read(ctx)
	if err != nil || kind == websocket.MessageBinary {
		w.rest = append(w.rest, data...)
		return err
	}
	var e api.ViewEvent
	err = json.Unmarshal(data, &e)
	w.told = append(w.told, e)
	return err
}

// read reads bytes of VNC.
func (w *window) read(n int) []byte {
	w.t.Helper()
	for len(w.rest) < n {
		if err := w.next(); err != nil {
			w.t.Fatal(err)
		}
	}
	read := w.rest[:n]
	w.rest = w.rest[n:]
	return read
}

func (w *window) hears(want string) {
	w.t.Helper()
	if got := w.read(len(want)); string(got) != want {
		w.t.Fatalf("%q, want %q", got, want)
	}
}

func (w *window) send(text string) {
	w.t.Helper()
	if err := w.ws.Write(w.t.Context(), websocket.MessageBinary, []byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

// press presses a key and lets it go.
func (w *window) press(key string) {
	w.t.Helper()
	w.send("\x04\x01\x00\x00\x00\x00\x00" + key + "\x04\x00\x00\x00\x00\x00\x00" + key)
}

// click clicks below the middle of the screen.
func (w *window) click() {
	w.t.Helper()
	at := string([]byte{byte(w.width / 2 >> 8), byte(w.width / 2), byte(w.height * 3 / 4 >> 8), byte(w.height * 3 / 4)})
	w.send("\x05\x01" + at + "\x05\x00" + at)
}

// ask sends a text and returns what is told about it.
func (w *window) ask(input string) api.ViewEvent {
	w.t.Helper()
	w.told = nil
	if err := w.ws.Write(w.t.Context(), websocket.MessageText, []byte(input)); err != nil {
		w.t.Fatal(err)
	}
	for {
		for _, e := range w.told {
			if e.Type != api.ViewState {
				return e
			}
		}
		if err := w.next(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// isCut waits until the connection is closed.
func (w *window) isCut() {
	w.t.Helper()
	for w.next() == nil {
		w.rest = nil
	}
	if w.t.Context().Err() != nil {
		w.t.Error("it was not closed")
	}
}

// picture asks for the whole screen and returns its pixels.
func (w *window) picture() []byte {
	w.t.Helper()
	w.send("\x02\x00\x00\x01\x00\x00\x00\x00" + "\x03\x00\x00\x00\x00\x00" + string([]byte{byte(w.width >> 8), byte(w.width), byte(w.height >> 8), byte(w.height)}))
	head := w.read(4)
	if head[0] != 0 {
		w.t.Fatalf("no picture: %q", head)
	}
	var all []byte
	for range int(head[2])<<8 | int(head[3]) {
		rect := w.read(12)
		all = append(all, w.read((int(rect[4])<<8|int(rect[5]))*(int(rect[6])<<8|int(rect[7]))*4)...)
	}
	return all
}

// TestWindow tests all ways to the window of a browser: Chromium on Xtigervnc.
func TestWindow(t *testing.T) {
	need.Time(t, "it builds an image with Chromium")
	s := newWindowSite(t)
	s.attackEndpoints(t)
	t.Run("who may not", s.testWindowRefused)
	t.Run("AttackBrowser22_ViewOnly", s.testWindowKeys)
	t.Run("AttackBrowser16_AddressBar", s.testAddressBar)
	s.slowWindow(t)
	t.Run("the page", func(t *testing.T) { s.testPage(t, "vnc") })
	t.Run("AttackBrowser22_Protocol", s.testWindowProtocol)
	t.Run("AttackBrowser22_Revoked", s.testWindowRevoked)
	t.Run("AttackBrowser23_SlowViewer", s.testWindowSlow)
	t.Run("the end", s.testWindowStop)
}

// testWindowRefused checks who does not get a window.
func (s *site) testWindowRefused(t *testing.T) {
	vnc := "/" + s.name + "/vnc"
	s.ask(t, question{"", http.MethodPost, vnc, `{}`}, http.StatusUnauthorized, nil)
	s.ask(t, question{"read", http.MethodPost, vnc, `{}`}, http.StatusForbidden, nil)
	s.ask(t, question{"other", http.MethodPost, vnc, `{}`}, http.StatusNotFound, nil)
	s.ask(t, question{"run", http.MethodPost, vnc, `{"control":true}`}, http.StatusForbidden, nil)
	url := s.ticket(t, "run", "vnc", `{}`)
	if _, status := dial(t, strings.Replace(url, "/vnc/", "/view/", 1), nil); status != http.StatusUnauthorized {
		t.Error("as a view:", status)
	}
	if _, status := dial(t, url, http.Header{"Origin": {"https://evil.example"}}); status != http.StatusForbidden {
		t.Error("from a page:", status)
	}
}

// keys returns what was typed into the page.
func keys(t *testing.T, p *program, session string) string {
	t.Helper()
	return evaluate(t, p, session, `window.keys||''`)
}

// testWindowKeys checks that what viewers see is the window, and that keys arrive from the
// viewer that has taken the browser over, and from no other.
func (s *site) testWindowKeys(t *testing.T) {
	p, session, _ := s.openShop(t)
	watcher, driver, second := s.window(t, "run", `{}`), s.window(t, "operator", `{"control":true}`), s.window(t, "all", `{"control":true}`)
	if picture := watcher.picture(); len(picture) < 1000 {
		t.Errorf("a picture of %d bytes", len(picture))
	}
	if port := s.entry(t).NoVNCPort; !strings.HasSuffix(s.address, ":"+strconv.Itoa(port)) {
		t.Errorf("the registry has port %d", port)
	}
	others := func() {
		for key, w := range map[string]*window{"x": watcher, "y": second} {
			w.click()
			w.press(key)
		}
	}
	others()
	driver.press("v") // before it has taken over
	if got := watcher.ask(`{"type":"take"}`); got.Type != api.ViewRefused {
		t.Errorf("%+v", got)
	}
	if got := driver.ask(`{"type":"take"}`); got.Type != api.ViewTaken {
		t.Fatalf("%+v", got)
	}
	if got := second.ask(`{"type":"take"}`); got.Type != api.ViewRefused || !strings.Contains(got.Detail, "a person has the browser") {
		t.Errorf("%+v", got)
	}
	waitFor(t, func() bool {
		others()
		driver.click()
		driver.press("z")
		return strings.Contains(keys(t, p, session), "z")
	})
	if got := driver.ask(`{"type":"release"}`); got.Type != api.ViewReleased {
		t.Errorf("%+v", got)
	}
	driver.press("w")
	if got := second.ask(`{"type":"take"}`); got.Type != api.ViewTaken {
		t.Fatalf("%+v", got)
	}
	waitFor(t, func() bool {
		watcher.press("x")
		driver.press("w")
		second.press("q")
		return strings.Contains(keys(t, p, session), "q")
	})
	if got := keys(t, p, session); strings.Trim(got, "zq") != "" {
		t.Errorf("%q was typed", got)
	}
	for _, w := range []*window{watcher, driver, second} {
		_ = w.ws.CloseNow()
	}
	waitFor(t, func() bool { return s.entry(t).NoVNCPort == 0 })
}

// enter types an address into the address bar and presses the enter key.
func (w *window) enter(address string) {
	w.t.Helper()
	const control = "\xff\xe3"
	w.send("\x04\x01\x00\x00\x00\x00" + control)
	w.press("l")
	w.send("\x04\x00\x00\x00\x00\x00" + control)
	for key := range strings.SplitSeq(address, "") {
		w.press(key)
	}
	w.send("\x04\x01\x00\x00\x00\x00\xff\x0d" + "\x04\x00\x00\x00\x00\x00\xff\x0d")
}

// testAddressBar checks that no script and no file is opened by the address bar of a window,
// which otherwise works.
func (s *site) testAddressBar(t *testing.T) {
	p, session, _ := s.openShop(t)
	driver := s.window(t, "operator", `{"control":true}`)
	if got := driver.ask(`{"type":"take"}`); got.Type != api.ViewTaken {
		t.Fatalf("%+v", got)
	}
	goes := func(to string) {
		t.Helper()
		waitFor(t, func() bool {
			driver.enter("http://shop.example/?" + to)
			return evaluate(t, p, session, `location.search`) == "?"+to
		})
	}
	goes("before")
	driver.enter("javascript:localStorage.owned=1")
	goes("after")
	if got := evaluate(t, p, session, `String(localStorage.owned)`); got != "undefined" {
		t.Errorf("the script has run: %s", got)
	}
	_ = driver.ws.CloseNow()
}

// testWindowProtocol checks that what is not known ends a viewer's connection.
func (s *site) testWindowProtocol(t *testing.T) {
	for _, bad := range []string{"\x96\x01", "\xff\x00\x00\x00", "\x06\x00\x00\x00\xff\xff\xff\xff"} {
		w := s.window(t, "operator", `{"control":true}`)
		w.send(bad)
		w.isCut()
	}
	ws, status := dial(t, s.ticket(t, "run", "vnc", `{}`), nil)
	if ws == nil {
		t.Fatal(status)
	}
	w := &window{t: t, ws: ws}
	w.send("GET / HTTP/1.1\r\n\r\n")
	w.isCut()
}

// testWindowRevoked checks that a window is closed with its viewer's token.
func (s *site) testWindowRevoked(t *testing.T) {
	w := s.window(t, "ends", `{}`)
	s.revoke(t, "ends")
	w.isCut()
}

// testWindowStop checks that a window is closed with the browser.
func (s *site) testWindowStop(t *testing.T) {
	w := s.window(t, "run", `{}`)
	s.ask(t, question{"operator", http.MethodPost, "/" + s.name + "/stop", ""}, http.StatusOK, nil)
	w.isCut()
	if _, status := dial(t, s.ticket(t, "run", "vnc", `{}`), nil); status != http.StatusConflict {
		t.Error(status)
	}
}

// slowWindow makes a viewer who asks for pictures and takes none.
func (s *site) slowWindow(t *testing.T) {
	t.Helper()
	w := s.window(t, "operator", `{}`)
	for range 200 {
		w.send("\x03\x00\x00\x00\x00\x00" + string([]byte{byte(w.width >> 8), byte(w.width), byte(w.height >> 8), byte(w.height)}))
	}
}

// testWindowSlow checks that a slow viewer delays no other, and is cut.
func (s *site) testWindowSlow(t *testing.T) {
	quick := s.window(t, "run", `{}`)
	for range 5 {
		if picture := quick.picture(); len(picture) < 1000 {
			t.Errorf("a picture of %d bytes", len(picture))
		}
	}
	_ = quick.ws.CloseNow()
	waitFor(t, func() bool { return s.viewers(t) == 0 })
}
