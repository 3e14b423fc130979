package backend

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/browsers"
	"github.com/atoll-run/atoll/internal/gateway/browsers/localport"
	"github.com/atoll-run/atoll/internal/gateway/serve"
)

// Browsers carries out the verbs about browsers.
type Browsers interface {
	Browsers(ctx context.Context) ([]api.Browser, error)
	StopBrowser(ctx context.Context, name string) error
	// Browser returns the browser of a sandbox for programs that attach to it.
	Browser(name string) localport.Browser
}

// OpenBrowsers returns the running gateway, or this process.
func OpenBrowsers(ctx context.Context, e *console.Env) (Browsers, error) {
	if g, err := RunningGateway(ctx, e); g != nil || err != nil {
		return g, err
	}
	a, err := e.Open(ctx)
	if err != nil {
		return nil, err
	}
	s, err := serve.NewBrowsers(a.Parts(), browsers.Options{Logger: a.Logger})
	return localBrowsers{s}, err
}

// Browsers lists the gateway's browsers.
func (g Gateway) Browsers(ctx context.Context) ([]api.Browser, error) {
	list, err := g.Client.Browsers(ctx, api.BrowserQuery{})
	if err != nil {
		return nil, ProblemError(err)
	}
	return list.Browsers, nil
}

// StopBrowser ends a browser of the gateway.
func (g Gateway) StopBrowser(ctx context.Context, name string) error {
	_, err := g.Client.StopBrowser(ctx, name)
	return ProblemError(err)
}

// Browser returns a browser of the gateway.
func (g Gateway) Browser(name string) localport.Browser {
	socket := serve.SocketPath(g.Settings)
	return gatewayBrowser{g, name, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = &url.URL{Scheme: "http", Host: "localhost", Path: "/api/v1/browsers/" + name + "/cdp"}
			r.Out.Host = "localhost"
			for _, header := range []string{"Authorization", "Cookie", access.PageHeader, "Sec-Websocket-Protocol"} {
				r.Out.Header.Del(header) // the socket says who is calling
			}
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}},
	}}
}

// gatewayBrowser is a browser that a gateway lets programs attach to.
type gatewayBrowser struct {
	gateway Gateway
	name    string
	*httputil.ReverseProxy
}

// Version implements localport.Browser.
func (b gatewayBrowser) Version(ctx context.Context) (*api.BrowserVersion, error) {
	v, err := b.gateway.Client.BrowserVersion(ctx, b.name)
	return v, ProblemError(err)
}

// Tabs implements localport.Browser.
func (b gatewayBrowser) Tabs(ctx context.Context) (*api.BrowserTabs, error) {
	list, err := b.gateway.Client.BrowserTabs(ctx, b.name)
	return list, ProblemError(err)
}
