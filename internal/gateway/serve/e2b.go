package serve

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/internal/gateway"
	"github.com/atoll-run/atoll/internal/gateway/e2b"
	"github.com/atoll-run/atoll/internal/gateway/e2b/envd"
	"github.com/atoll-run/atoll/internal/gateway/portproxy"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// e2bRoute serves the clients of E2B, and passes every other request on.
type e2bRoute struct {
	*e2b.Server
	next http.Handler
}

// ServeHTTP implements http.Handler.
func (e *e2bRoute) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e2b.Serves(r) {
		e.Server.ServeHTTP(w, r)
		return
	}
	e.next.ServeHTTP(w, r)
}

// openE2B makes what serves the clients of E2B, and the ports of sandboxes: at one of them
// the gateway itself answers these clients.
func (g *Gateway) openE2B(context.Context) error {
	g.ports = &portproxy.Proxy{Made: g.made}
	g.e2b = e2b.New(e2b.Options{
		Made: g.made, Access: g.access, Ports: g.ports, Templates: g.parts.Config.E2BTemplates, States: g.states, Inbound: g.inbound, Logger: g.logger,
	})
	g.ports.Own = map[int]func(http.ResponseWriter, *http.Request, string){
		envd.Port: func(w http.ResponseWriter, r *http.Request, id string) {
			gateway.PaceBody(w, r, membudget.Pace{}.OrDefault())
			g.e2b.Envd.ServeSandbox(w, r, id)
		},
	}
	g.onClose(g.e2b.Close)
	return nil
}

// states returns what the sandboxes of the installation do now, by name.
func (g *Gateway) states(ctx context.Context) (map[string]sandbox.State, error) {
	all, _, err := g.parts.List(ctx, 0)
	if err != nil {
		return nil, err
	}
	found := make(map[string]sandbox.State, len(all))
	for i := range all {
		found[all[i].ContainerName] = all[i].State
	}
	return found, nil
}
