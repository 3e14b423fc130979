package browsers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/browser/screen"
	"github.com/atoll-run/atoll/internal/config/browserkeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

// PathView is the path of the WebSocket of a viewer.
const PathView = "/api/v1/browsers/{name}/view/{ticket}"

const (
	maxInput = 16 << 10 // bytes of a message of a viewer
	maxTab   = 64       // bytes of the id of a tab
	sendTime = 10 * time.Second
)

// errViewOnly is told to a viewer who may only watch.
var errViewOnly = errors.New("this view is for watching only")

// errNoInput ends the view of who sends what is no ViewInput.
var errNoInput = errors.New("a message that is no ViewInput")

// errWindow is told to a viewer of a window, whose keys are in VNC.
var errWindow = errors.New("what is typed into a window is sent by VNC")

// errNotTaken is told to a viewer who has not taken the browser over.
var errNotTaken = errhint.With(errors.New("the browser is not yours"), "take it over first")

// allowView returns an error unless a caller may watch a browser, or take it over.
func (s *Service) allowView(ctx context.Context, c *access.Caller, name string, control bool) error {
	e, err := s.find(ctx, c, name)
	if err != nil {
		return err
	}
	settings := s.settings(e)
	switch {
	case !c.May(access.Run), control && !c.May(access.Operator):
		return access.ErrScope
	case settings.View != browserkeys.ViewAuto:
		return ErrViewOff
	case control && settings.Control != browserkeys.ControlAsk:
		return ErrControlOff
	}
	return nil
}

// OfferView returns a WebSocket that a viewer may open once.
func (s *Service) OfferView(ctx context.Context, c *access.Caller, name, base string, q *api.ViewBrowser) (*api.BrowserEndpoint, error) {
	if err := s.allowView(ctx, c, name, q.Control); err != nil {
		return nil, err
	}
	if len(q.Tab) > maxTab {
		return nil, ErrNotFound
	}
	return s.offer(&ticket{caller: c, browser: name, endpoint: endpointView, tab: q.Tab, control: q.Control}, base)
}

// ServeView shows a browser to a viewer who has a ticket.
func (s *Service) ServeView(w http.ResponseWriter, r *http.Request) {
	t, ctx, stop := s.redeem(r, endpointView)
	if t == nil {
		refuse(w, access.ErrDenied)
		return
	}
	defer stop()
	if err := s.allowView(ctx, t.caller, t.browser, t.control); err != nil {
		refuse(w, err)
		return
	}
	u, leave, err := s.enter(t.browser, func(u *used) *int { return &u.viewers }, MaxViewers)
	if err != nil {
		refuse(w, err)
		return
	}
	defer leave()
	shown, release, err := s.screen(ctx, t.browser, t.tab, u)
	if err != nil {
		refuse(w, err)
		return
	}
	defer release()
	s.view(ctx, w, r, t, shown)
}

// view upgrades the request and shows the browser until the viewer leaves.
func (s *Service) view(ctx context.Context, w http.ResponseWriter, r *http.Request, t *ticket, shown *screen.Screen) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: s.Origins})
	if err != nil {
		return // it has answered
	}
	ws.SetReadLimit(maxInput)
	from := access.Remote(r)
	s.record(&audit.BrowserEvent{Event: "viewed"}, t.caller, t.browser, from)
	v := &viewer{service: s, ticket: t, ws: ws, screen: shown, from: from}
	v.serve(ctx)
}

// viewer is a person who watches a browser.
type viewer struct {
	service *Service
	ticket  *ticket
	ws      *websocket.Conn
	screen  *screen.Screen // nil if its window is watched
	letGo   func()         // releases what was pressed in a window; nil if its page is watched
	from    netip.Addr
	release func()      // gives the browser back; nil if the viewer does not drive
	drives  atomic.Bool // release is not nil
	sending sync.Mutex  // held while a picture or an event is sent
}

// serve sends pictures until the viewer leaves, the token ends or the browser does.
func (v *viewer) serve(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	parts.Go(func() { cancel(v.send(ctx)) })
	parts.Go(func() { v.sayDriver(ctx, v.screen) })
	cancel(v.read(ctx))
	v.giveBack()
	_ = v.ws.Close(websocket.StatusGoingAway, "the view was closed")
	parts.Wait()
}

// send sends the newest picture, whenever the viewer has taken the one before.
func (v *viewer) send(ctx context.Context) error {
	known := 0
	for {
		frame, err := v.screen.Next(ctx, known)
		if err != nil {
			return err
		}
		known = frame.Number
		if err := v.sendFrame(ctx, frame); err != nil {
			return err
		}
	}
}

// sendFrame sends a picture after its size; nothing comes between them.
func (v *viewer) sendFrame(ctx context.Context, frame *screen.Frame) error {
	v.sending.Lock()
	defer v.sending.Unlock()
	if err := v.tellNow(ctx, &api.ViewEvent{Type: api.ViewFrame, Width: frame.Width, Height: frame.Height}); err != nil {
		return err
	}
	return v.write(ctx, websocket.MessageBinary, frame.Picture)
}

// tell tells the viewer something between pictures.
func (v *viewer) tell(ctx context.Context, e *api.ViewEvent) error {
	v.sending.Lock()
	defer v.sending.Unlock()
	return v.tellNow(ctx, e)
}

func (v *viewer) tellNow(ctx context.Context, e *api.ViewEvent) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return v.write(ctx, websocket.MessageText, text)
}

func (v *viewer) write(ctx context.Context, kind websocket.MessageType, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return v.ws.Write(ctx, kind, b)
}

// read does what the viewer asks for.
func (v *viewer) read(ctx context.Context) error {
	for {
		kind, data, err := v.ws.Read(ctx)
		if err == nil && kind != websocket.MessageText {
			err = errNoInput
		}
		if err == nil {
			err = v.carryOut(ctx, data)
		}
		if err != nil {
			return err
		}
	}
}

// carryOut does what a message asks for, and tells the viewer what became of it.
func (v *viewer) carryOut(ctx context.Context, message []byte) (err error) {
	var i api.ViewInput
	if json.Unmarshal(message, &i) != nil {
		return errNoInput
	}
	told := &api.ViewEvent{}
	if told.Type, err = v.do(ctx, &i); err != nil {
		told.Type, told.Detail = api.ViewRefused, err.Error()
	}
	if told.Type == "" {
		return nil
	}
	return v.tell(ctx, told)
}

// do takes the browser, gives it back, or passes on input. It returns what to tell the
// viewer.
func (v *viewer) do(ctx context.Context, i *api.ViewInput) (told string, err error) {
	switch {
	case !v.ticket.control:
		return "", errViewOnly
	case i.Type == "take":
		return api.ViewTaken, v.take(ctx)
	case i.Type == "release":
		v.giveBack()
		return api.ViewReleased, nil
	case v.release == nil:
		return "", errNotTaken
	case v.screen == nil:
		return "", errWindow
	}
	return "", v.screen.Input(ctx, i)
}

func (v *viewer) take(ctx context.Context) (err error) {
	if v.release != nil {
		return nil
	}
	if v.release, err = v.service.Drivers.Take(v.ticket.browser); err != nil {
		return err
	}
	v.drives.Store(true)
	v.service.record(&audit.BrowserEvent{Event: "taken"}, v.ticket.caller, v.ticket.browser, v.from)
	if v.screen != nil {
		_ = v.screen.Focus(ctx) // a tab behind others can be driven too
	}
	return nil
}

func (v *viewer) giveBack() {
	if v.release == nil {
		return
	}
	if v.letGo != nil {
		v.letGo()
	}
	v.drives.Store(false)
	v.release()
	v.release = nil
	v.service.record(&audit.BrowserEvent{Event: "released"}, v.ticket.caller, v.ticket.browser, v.from)
}
