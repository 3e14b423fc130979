package serve

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/gateway"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/browsers"
)

// openBrowsers makes what lets callers use browsers.
func (g *Gateway) openBrowsers(context.Context) (err error) {
	g.browsers, err = NewBrowsers(g.parts, browsers.Options{Access: g.access, Origins: g.config.Origins, Logger: g.logger, Port: g.port})
	return err
}

// NewBrowsers returns what lets callers use the browsers of an installation. The options
// say who they are.
func NewBrowsers(p *Parts, o browsers.Options) (*browsers.Service, error) {
	log, err := p.Models.AuditLog()
	if err != nil {
		return nil, err
	}
	o.In, o.Browsers, o.Drivers = p.Installation, p.Browsers, &p.Browsers.Drivers
	o.Audit = func(e *audit.BrowserEvent) error { return log.Append(e) }
	return browsers.New(o), nil
}

// browserRoutes are the WebSockets of browsers.
func (g *Gateway) browserRoutes() []gateway.Route {
	return []gateway.Route{
		{Path: browsers.PathCDP, Scope: access.Operator, Handler: http.HandlerFunc(g.browsers.ServeCDP)},
		{Path: browsers.PathCDPTicket, Handler: http.HandlerFunc(g.browsers.ServeCDPTicket)},
		{Path: browsers.PathView, Handler: http.HandlerFunc(g.browsers.ServeView)},
		{Path: browsers.PathWindow, Handler: http.HandlerFunc(g.browsers.ServeWindow)},
	}
}
