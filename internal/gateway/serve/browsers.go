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
func (g *Gateway) openBrowsers(context.Context) error {
	log, err := g.parts.Models.AuditLog()
	if err != nil {
		return err
	}
	g.browsers = browsers.New(browsers.Options{
		In: g.parts.Installation, Browsers: g.parts.Browsers, Access: g.access, Origins: g.config.Origins, Logger: g.logger,
		Drivers: &g.parts.Browsers.Drivers, Audit: func(e *audit.BrowserEvent) error { return log.Append(e) },
	})
	return nil
}

// browserRoutes are the WebSockets of browsers.
func (g *Gateway) browserRoutes() []gateway.Route {
	return []gateway.Route{
		{Path: browsers.PathCDP, Scope: access.Operator, Handler: http.HandlerFunc(g.browsers.ServeCDP)},
		{Path: browsers.PathCDPTicket, Handler: http.HandlerFunc(g.browsers.ServeCDPTicket)},
		{Path: browsers.PathView, Handler: http.HandlerFunc(g.browsers.ServeView)},
	}
}
