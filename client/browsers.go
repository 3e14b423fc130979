package client

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

const browsers = "/api/v1/browsers"

// Browsers lists the browsers in sandboxes.
func (c *Client) Browsers(ctx context.Context, q api.BrowserQuery) (*api.Browsers, error) {
	return get[api.Browsers](ctx, c, browsers, q)
}

// StartBrowser starts the browser of a session, unless it runs.
func (c *Client) StartBrowser(ctx context.Context, q *api.StartBrowser) (*api.Browser, error) {
	return do[api.Browser](ctx, c, http.MethodPost, browsers, q)
}

// StopBrowser ends a browser; its sandbox stays.
func (c *Client) StopBrowser(ctx context.Context, name string) (*api.Browser, error) {
	return do[api.Browser](ctx, c, http.MethodPost, pathWith(browsers+"/", name, "/stop"), nil)
}

// AttachBrowser returns a WebSocket of the DevTools protocol for one connection.
func (c *Client) AttachBrowser(ctx context.Context, name string) (*api.BrowserEndpoint, error) {
	return do[api.BrowserEndpoint](ctx, c, http.MethodPost, pathWith(browsers+"/", name, "/cdp"), nil)
}

// BrowserVersion returns what clients of the DevTools protocol ask for first.
func (c *Client) BrowserVersion(ctx context.Context, name string) (*api.BrowserVersion, error) {
	return get[api.BrowserVersion](ctx, c, pathWith(browsers+"/", name, "/json/version"), nil)
}

// BrowserTabs lists the tabs of a browser.
func (c *Client) BrowserTabs(ctx context.Context, name string) (*api.BrowserTabs, error) {
	return get[api.BrowserTabs](ctx, c, pathWith(browsers+"/", name, "/tabs"), nil)
}

// WatchWindow returns a WebSocket of VNC to watch the window of a browser by, for one
// connection.
func (c *Client) WatchWindow(ctx context.Context, name string, q *api.WatchWindow) (*api.BrowserEndpoint, error) {
	return do[api.BrowserEndpoint](ctx, c, http.MethodPost, pathWith(browsers+"/", name, "/vnc"), q)
}

// ViewBrowser returns a WebSocket to watch a browser by, for one connection.
func (c *Client) ViewBrowser(ctx context.Context, name string, q *api.ViewBrowser) (*api.BrowserEndpoint, error) {
	return do[api.BrowserEndpoint](ctx, c, http.MethodPost, pathWith(browsers+"/", name, "/view"), q)
}
