package browsers

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/browser/attach"
	"github.com/atoll-run/atoll/internal/browser/devtools"
	"github.com/atoll-run/atoll/internal/config/browserkeys"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// The paths of WebSockets that programs attach by.
const (
	PathCDP       = "/api/v1/browsers/{name}/cdp"
	PathCDPTicket = PathCDP + "/{ticket}"
)

const (
	// protocolVersion is the version of the DevTools protocol.
	protocolVersion = "1.3"
	// maxListed is how many tabs are listed.
	maxListed = 200
)

// allowCDP returns an error unless a caller's programs may attach to a browser.
func (s *Service) allowCDP(ctx context.Context, c *access.Caller, name string, from netip.Addr) error {
	e, err := s.find(ctx, c, name)
	if err != nil {
		return err
	}
	if !c.May(access.Operator) {
		return access.ErrScope
	}
	settings := s.settings(e)
	if settings.CDP != browserkeys.CDPOperator {
		return ErrOff
	}
	return checkSource(settings, from)
}

// OfferCDP returns a WebSocket that a program may open once. base is where the caller
// reaches the gateway, for example ws://127.0.0.1:18789.
func (s *Service) OfferCDP(ctx context.Context, c *access.Caller, name, base string, from netip.Addr) (*api.BrowserEndpoint, error) {
	if err := s.allowCDP(ctx, c, name, from); err != nil {
		return nil, err
	}
	return s.offer(&ticket{caller: c, browser: name, endpoint: endpointCDP}, base)
}

func (s *Service) offer(t *ticket, base string) (*api.BrowserEndpoint, error) {
	text, err := s.tickets.issue(t)
	if err != nil {
		return nil, err
	}
	return &api.BrowserEndpoint{WSEndpoint: base + "/api/v1/browsers/" + t.browser + "/" + string(t.endpoint) + "/" + text, Expires: t.expires}, nil
}

// Version returns what clients of the DevTools protocol ask for first.
func (s *Service) Version(ctx context.Context, c *access.Caller, name, base string, from netip.Addr) (*api.BrowserVersion, error) {
	endpoint, err := s.OfferCDP(ctx, c, name, base, from)
	if err != nil {
		return nil, err
	}
	b, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer b.release()
	product, agent, err := b.Version(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	return &api.BrowserVersion{Browser: product, ProtocolVersion: protocolVersion, UserAgent: agent, Socket: endpoint.WSEndpoint}, nil
}

// Tabs lists the tabs of a browser for those who may watch it, or attach programs to it.
func (s *Service) Tabs(ctx context.Context, c *access.Caller, name string, from netip.Addr) (*api.BrowserTabs, error) {
	if err := s.allowView(ctx, c, name, false); err != nil && s.allowCDP(ctx, c, name, from) != nil {
		return nil, err
	}
	b, err := s.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer b.release()
	found, err := b.Tabs(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	list := &api.BrowserTabs{Tabs: []api.BrowserTab{}}
	for _, t := range found[:min(len(found), maxListed)] {
		list.Tabs = append(list.Tabs, api.BrowserTab{ID: t.ID, URL: t.URL, Title: t.Title})
	}
	return list, nil
}

// ServeCDP attaches a program that was let in by a token.
func (s *Service) ServeCDP(w http.ResponseWriter, r *http.Request) {
	s.serveCDP(w, r, access.FromContext(r.Context()))
}

// ServeCDPTicket attaches a program that has a ticket.
func (s *Service) ServeCDPTicket(w http.ResponseWriter, r *http.Request) {
	t, ctx, stop := s.redeem(r, endpointCDP)
	if t == nil {
		refuse(w, access.ErrDenied)
		return
	}
	defer stop()
	s.serveCDP(w, r.WithContext(ctx), t.caller)
}

// redeem returns the ticket of a request, nil if it has none, and a context that ends with
// the token, or the log-in of a page, that it was issued to. Wrong tickets count as wrong tokens do.
func (s *Service) redeem(r *http.Request, d endpoint) (t *ticket, ctx context.Context, stop func()) {
	from := access.Remote(r)
	if s.Access.Throttle.Check(from) != nil {
		return nil, nil, nil
	}
	if t = s.tickets.redeem(r.PathValue("ticket"), r.PathValue("name"), d); t == nil {
		_ = s.Access.Throttle.Failed(from) // it counts them
		return nil, nil, nil
	}
	ctx, stop = s.Access.UntilEnded(r.Context(), t.caller)
	return t, ctx, stop
}

func (s *Service) serveCDP(w http.ResponseWriter, r *http.Request, c *access.Caller) {
	name, from := r.PathValue("name"), access.Remote(r)
	if err := s.allowCDP(r.Context(), c, name, from); err != nil {
		s.record(&audit.BrowserEvent{Event: "refused", Reason: err.Error()}, c, name, from)
		refuse(w, err)
		return
	}
	u, leave, err := s.enter(name, func(u *used) *int { return &u.programs }, MaxPrograms)
	if err != nil {
		refuse(w, err)
		return
	}
	defer leave()
	defer s.recordEndpoint(r.Context(), name, sandbox.EndpointCDP, from)()
	b, err := s.open(r.Context(), name)
	if err != nil {
		refuse(w, err)
		return
	}
	defer b.release()
	s.attach(w, r, u, b, c)
}

// recordEndpoint records the port that a connection to a browser came in by, until closed is called.
// One of the owner's socket has none.
func (s *Service) recordEndpoint(ctx context.Context, name string, d sandbox.Endpoint, from netip.Addr) (closed func()) {
	if s.Port == nil || !from.IsValid() {
		return func() {}
	}
	port := s.Port()
	if port == 0 {
		return func() {}
	}
	closed, err := s.In.OpenEndpoint(ctx, name, d, port)
	if err != nil {
		s.Logger.WarnContext(ctx, "an endpoint of a browser", "sandbox", name, "error", err)
		return func() {}
	}
	return closed
}

// attach upgrades the request and carries the protocol until one side leaves.
func (s *Service) attach(w http.ResponseWriter, r *http.Request, u *used, b *connection, c *access.Caller) {
	name, from := r.PathValue("name"), access.Remote(r)
	upstream, err := dial(r.Context(), b)
	if err != nil {
		refuse(w, err)
		return
	}
	program, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: s.Origins})
	if err != nil {
		_ = upstream.CloseNow()
		return // it has answered
	}
	s.record(&audit.BrowserEvent{Event: "attached"}, c, name, from)
	filter := attach.NewFilter(&u.contexts, func(path string) bool { return s.Browsers.IsStaged(name, path) })
	why := (&attach.Connection{Program: program, Browser: upstream, Filter: filter}).Serve(r.Context())
	passed, refused := filter.Counts()
	s.record(&audit.BrowserEvent{Event: "detached", Reason: why.Error(), Passed: passed, Refused: refused}, c, name, from)
}

// dial opens a WebSocket of its own to the browser.
func dial(ctx context.Context, b *connection) (*websocket.Conn, error) {
	address, err := b.Socket(ctx)
	if err != nil {
		return nil, err
	}
	return devtools.DialSocket(ctx, address, b.Dial)
}

// record writes an event to the audit log.
func (s *Service) record(e *audit.BrowserEvent, c *access.Caller, name string, from netip.Addr) {
	e.Time, e.Sandbox, e.Token, e.Subject.Account = time.Now(), name, c.Token, c.Account
	if from.IsValid() {
		e.From = from.String()
	}
	if err := s.Audit(e); err != nil {
		s.Logger.Error("a browser's connection could not be recorded", "error", err)
	}
}
