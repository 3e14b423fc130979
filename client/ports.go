package client

import (
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/atoll-run/atoll/api"
)

// Port returns a transport to a port of a sandbox, through the gateway. It sends every
// request there, whatever host its URL names, WebSockets too.
func (c *Client) Port(box *api.Sandbox, port int) http.RoundTripper {
	return &portTransport{client: c, host: fmt.Sprintf("%d-%s", port, box.ID), token: box.PortToken}
}

// portTransport is a transport to one port.
type portTransport struct {
	client      *Client
	host, token string
}

// RoundTrip implements http.RoundTripper.
func (p *portTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	base, err := url.Parse(p.client.base)
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host = base.Scheme, base.Host
	out.Host = p.host + "." + base.Host
	if net.ParseIP(base.Hostname()) != nil { // an address has no names below it
		out.Host = p.host + ".localhost"
	}
	out.Header.Set(api.PortTokenHeader, p.token)
	return p.client.http.Transport.RoundTrip(out)
}
