package rest

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"reflect"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/browsers"
	"github.com/atoll-run/atoll/internal/gateway/dashboard"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Browsers are the browsers in sandboxes; *browsers.Service implements it.
type Browsers interface {
	List(ctx context.Context, c *access.Caller, account string) (*api.Browsers, error)
	Start(ctx context.Context, who *provide.Subject) (*api.Browser, error)
	Stop(ctx context.Context, c *access.Caller, name string) (*api.Browser, error)
	OfferCDP(ctx context.Context, c *access.Caller, name, base string, from netip.Addr) (*api.BrowserEndpoint, error)
	Version(ctx context.Context, c *access.Caller, name, base string, from netip.Addr) (*api.BrowserVersion, error)
	Tabs(ctx context.Context, c *access.Caller, name string, from netip.Addr) (*api.BrowserTabs, error)
	OfferView(ctx context.Context, c *access.Caller, name, base string, q *api.ViewBrowser) (*api.BrowserEndpoint, error)
	OfferWindow(ctx context.Context, c *access.Caller, name, base string, q *api.WatchWindow) (*api.BrowserEndpoint, error)
}

var _ Browsers = (*browsers.Service)(nil)

// ofBrowsers is a route that needs browsers.
func ofBrowsers[Q, B, A any](do func(c *call, query *Q, body *B) (*A, error)) shape {
	return answers(func(c *call, query *Q, body *B) (*A, error) {
		if c.Browsers == nil {
			return nil, &api.Problem{Status: http.StatusNotImplemented, Code: "not_supported", Detail: "this gateway has no browsers"}
		}
		answer, err := do(c, query, body)
		if p := browsers.Problem(err); p != nil {
			return nil, p
		}
		return answer, err
	})
}

// withMessages adds to a route that offers a view what is said over its WebSocket.
func withMessages(s shape) shape {
	s.messages = []reflect.Type{reflect.TypeFor[api.ViewInput](), reflect.TypeFor[api.ViewEvent]()}
	return s
}

func listBrowsers(c *call, q *api.BrowserQuery, _ *none) (*api.Browsers, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	return c.Browsers.List(c.ctx(), c.caller, account)
}

// startBrowser starts the browser of a session.
func startBrowser(c *call, _ *none, body *api.StartBrowser) (*api.Browser, error) {
	account, err := c.account(body.Account)
	if err != nil {
		return nil, err
	}
	return c.Browsers.Start(c.ctx(), &provide.Subject{AgentID: body.Agent, SessionKey: body.Session, Account: account, MostSandboxes: c.quota().Sandboxes})
}

func stopBrowser(c *call, _, _ *none) (*api.Browser, error) {
	return c.Browsers.Stop(c.ctx(), c.caller, c.path("name"))
}

func attachBrowser(c *call, _, _ *none) (*api.BrowserEndpoint, error) {
	return c.Browsers.OfferCDP(c.ctx(), c.caller, c.path("name"), c.socketBase(), access.Remote(c.r))
}

func browserVersion(c *call, _, _ *none) (*api.BrowserVersion, error) {
	return c.Browsers.Version(c.ctx(), c.caller, c.path("name"), c.socketBase(), access.Remote(c.r))
}

func listBrowserTabs(c *call, _, _ *none) (*api.BrowserTabs, error) {
	return c.Browsers.Tabs(c.ctx(), c.caller, c.path("name"), access.Remote(c.r))
}

func viewBrowser(c *call, _ *none, body *api.ViewBrowser) (*api.BrowserEndpoint, error) {
	return c.withPage(c.Browsers.OfferView(c.ctx(), c.caller, c.path("name"), c.socketBase(), body))
}

func watchWindow(c *call, _ *none, body *api.WatchWindow) (*api.BrowserEndpoint, error) {
	return c.withPage(c.Browsers.OfferWindow(c.ctx(), c.caller, c.path("name"), c.socketBase(), body))
}

// withPage adds the page that shows a browser, where the gateway has pages. The ticket is
// in the fragment, which no browser sends.
func (c *call) withPage(e *api.BrowserEndpoint, err error) (*api.BrowserEndpoint, error) {
	if err != nil || c.Web == nil {
		return e, err
	}
	base, ticket, _ := strings.Cut(e.WSEndpoint, "/api/v1/browsers/")
	if http, isAddress := strings.CutPrefix(base, "ws"); isAddress && !strings.HasPrefix(base, unixScheme) {
		e.Page = "http" + http + dashboard.Prefix + "view.html#" + ticket
	}
	return e, nil
}

// unixScheme is that of WebSockets on a Unix socket, as the package ws of npm writes it.
const unixScheme = "ws+unix:"

// socketBase returns where the caller reaches WebSockets of the gateway. A caller on the
// owner's socket is told an address, where there is one, else the socket.
func (c *call) socketBase() string {
	if !access.Remote(c.r).IsValid() && c.Address != nil {
		if address := c.Address(); address != "" {
			return "ws" + strings.TrimPrefix(address, "http")
		}
		return unixScheme + "//" + c.Socket + ":"
	}
	scheme := "ws://"
	if c.r.TLS != nil {
		scheme = "wss://"
	}
	return scheme + cmp.Or(c.r.Host, "localhost")
}

// versionPath is where clients of the DevTools protocol look first.
const versionPath = "/api/v1/browsers/{name}/json/version"

// serveVersion serves versionPath with a slash at its end too, as Playwright asks for it.
func (s *Server) serveVersion() {
	for i := range s.table {
		if s.table[i].path == versionPath {
			s.mux.Handle(http.MethodGet+" "+versionPath+"/{$}", s.serve(&s.table[i]))
		}
	}
}
