package outbound

import (
	"net/http"
)

// Guarded is a RoundTripper for servers that the configuration does not name: the
// address of each must pass a rule.
type Guarded struct {
	proxies *Proxies // nil: none is used
	checked *Dialer  // for names that a proxy will resolve
	direct  *http.Transport
	proxied *http.Transport
}

// Guarded returns a round tripper whose direct connections are made through a
// network, to addresses that the rule permits. With viaProxy, requests that the
// environment has a proxy for are sent to that proxy by the host itself, if the
// host's resolver finds only permitted addresses for the name. No connection is
// kept.
func (h *Host) Guarded(network Network, rule Rule, viaProxy bool) *Guarded {
	g := &Guarded{checked: &Dialer{Rule: rule}, direct: h.transport(&Dialer{Network: network, Rule: rule}), proxied: h.Transport()}
	g.direct.DisableKeepAlives, g.proxied.DisableKeepAlives = true, true
	if viaProxy {
		g.proxies = h.proxies
	}
	return g
}

// RoundTrip implements http.RoundTripper.
func (g *Guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.proxies == nil {
		return g.direct.RoundTrip(r)
	}
	proxy, err := g.proxies.For(r.URL)
	if err == nil && proxy == nil {
		return g.direct.RoundTrip(r)
	}
	if err == nil {
		_, err = g.checked.Resolve(r.Context(), r.URL.Hostname())
	}
	if err != nil {
		return nil, refuse(r, err)
	}
	return g.proxied.RoundTrip(r)
}

// refuse closes the body of a request that is not sent, as RoundTrip must.
func refuse(r *http.Request, err error) error {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return err
}

// CloseIdleConnections closes connections that wait for another request.
func (g *Guarded) CloseIdleConnections() {
	g.direct.CloseIdleConnections()
	g.proxied.CloseIdleConnections()
}
