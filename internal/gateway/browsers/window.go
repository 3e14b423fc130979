package browsers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/browser/rfb"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// PathWindow is the path of the WebSocket of those who watch a browser's window.
const PathWindow = "/api/v1/browsers/{name}/vnc/{ticket}"

// maxPasted bounds a message of a viewer of a window, which can have a pasted text.
const maxPasted = rfb.MaxCutText + maxInput

// errSlow ends the view of who does not begin to speak VNC.
var errSlow = errors.New("no VNC in time")

// OfferWindow returns a WebSocket that shows the window of a browser by VNC, once.
func (s *Service) OfferWindow(ctx context.Context, c *access.Caller, name, base string, q *api.WatchWindow) (*api.BrowserEndpoint, error) {
	if err := s.allowWindow(ctx, c, name, q.Control); err != nil {
		return nil, err
	}
	return s.offer(&ticket{caller: c, browser: name, endpoint: endpointWindow, control: q.Control}, base)
}

// allowWindow returns an error unless a caller may watch the window of a browser.
func (s *Service) allowWindow(ctx context.Context, c *access.Caller, name string, control bool) error {
	if err := s.allowView(ctx, c, name, control); err != nil {
		return err
	}
	e, err := s.find(ctx, c, name)
	if err == nil && !hasWindow(s.settings(e)) {
		return ErrNoWindow
	}
	return err
}

// ServeWindow shows the window of a browser to a viewer who has a ticket.
func (s *Service) ServeWindow(w http.ResponseWriter, r *http.Request) {
	t, ctx, stop := s.redeem(r, endpointWindow)
	if t == nil {
		refuse(w, access.ErrDenied)
		return
	}
	defer stop()
	if err := s.allowWindow(ctx, t.caller, t.browser, t.control); err != nil {
		refuse(w, err)
		return
	}
	_, leave, err := s.enter(t.browser, func(u *used) *int { return &u.viewers }, MaxViewers)
	if err != nil {
		refuse(w, err)
		return
	}
	defer leave()
	defer s.recordEndpoint(ctx, t.browser, sandbox.EndpointWindow, access.Remote(r))()
	b, err := s.open(ctx, t.browser)
	if err != nil {
		refuse(w, err)
		return
	}
	defer b.release()
	screen, err := b.Screen(ctx)
	if err != nil {
		refuse(w, fmt.Errorf("%w: %w", ErrNoWindow, err))
		return
	}
	defer screen.Close()
	s.showWindow(ctx, w, r, t, screen)
}

// showWindow upgrades the request and carries VNC until the viewer leaves.
func (s *Service) showWindow(ctx context.Context, w http.ResponseWriter, r *http.Request, t *ticket, screen net.Conn) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: s.Origins, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return // it has answered
	}
	ws.SetReadLimit(maxPasted)
	v := &viewer{service: s, ticket: t, ws: ws, from: access.Remote(r)}
	s.record(&audit.BrowserEvent{Event: "viewed"}, t.caller, t.browser, v.from)
	v.serveWindow(ctx, screen)
}

// serveWindow carries VNC until the viewer leaves, the token ends or the browser does.
// Binary messages are VNC; texts are those of every view.
func (v *viewer) serveWindow(ctx context.Context, screen net.Conn) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { _ = screen.Close() })()
	relay := &rfb.Relay{Screen: screen, Viewer: &windowConn{viewer: v, ctx: ctx}, Drives: func() bool { return v.release != nil }}
	v.letGo = func() { _ = relay.LetGo() } // the screen may be gone
	stopped := make(chan struct{}, 2)
	slow := time.AfterFunc(sendTime, func() { cancel(errSlow) })
	err := relay.Handshake()
	if slow.Stop() && err == nil {
		go func() { cancel(relay.FromScreen()); stopped <- struct{}{} }()
		go func() { v.sayDriver(ctx, nil); stopped <- struct{}{} }()
		cancel(relay.FromViewer())
		v.giveBack()
		<-stopped
		<-stopped
	}
	_ = v.ws.Close(websocket.StatusGoingAway, "the view was closed")
}

// windowConn is the viewer's side of VNC.
type windowConn struct {
	viewer *viewer
	ctx    context.Context //nolint:containedctx // the relay reads and writes bytes
	rest   []byte          // of the last message
}

// Write sends bytes to the viewer, who has a time to take them.
func (c *windowConn) Write(b []byte) (int, error) {
	if err := c.viewer.write(c.ctx, websocket.MessageBinary, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Read returns bytes of the viewer. Texts between them are carried out.
func (c *windowConn) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		kind, data, err := c.viewer.ws.Read(c.ctx)
		switch {
		case err != nil:
			return 0, errors.Join(io.ErrUnexpectedEOF, err)
		case kind == websocket.MessageBinary:
			c.rest = data
		default:
			if err := c.viewer.carryOut(c.ctx, data); err != nil {
				return 0, err
			}
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
