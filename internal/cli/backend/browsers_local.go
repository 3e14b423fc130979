package backend

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/browsers"
	"github.com/atoll-run/atoll/internal/gateway/browsers/localport"
)

// localBrowsers uses browsers in this process, as the owner.
type localBrowsers struct{ service *browsers.Service }

// Browsers implements Browsers.
func (l localBrowsers) Browsers(ctx context.Context) ([]api.Browser, error) {
	list, err := l.service.List(ctx, access.Socket(), "")
	if err != nil {
		return nil, err
	}
	return list.Browsers, nil
}

// StopBrowser implements Browsers.
func (l localBrowsers) StopBrowser(ctx context.Context, name string) error {
	_, err := l.service.Stop(ctx, access.Socket(), name)
	return err
}

// Browser implements Browsers.
func (l localBrowsers) Browser(name string) localport.Browser { return localBrowser{l.service, name} }

// localBrowser is a browser that this process lets programs attach to.
type localBrowser struct {
	service *browsers.Service
	name    string
}

// Version implements localport.Browser.
func (b localBrowser) Version(ctx context.Context) (*api.BrowserVersion, error) {
	return b.service.Version(ctx, access.Socket(), b.name, "", netip.Addr{})
}

// Tabs implements localport.Browser.
func (b localBrowser) Tabs(ctx context.Context) (*api.BrowserTabs, error) {
	return b.service.Tabs(ctx, access.Socket(), b.name, netip.Addr{})
}

// ServeHTTP implements localport.Browser.
func (b localBrowser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(access.WithCaller(r.Context(), access.Socket()))
	r.SetPathValue("name", b.name)
	r.RemoteAddr = "" // the owner, as on the gateway's socket
	b.service.ServeCDP(w, r)
}
