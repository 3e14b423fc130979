package outbound

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"
)

// NameDialer connects to servers by name for a sandbox. It connects directly,
// to an address that its rule permits, or through a proxy, which resolves the
// name itself: then the address is not checked.
type NameDialer struct {
	Host    *Host         // the proxies of the environment, and the certificates of an https proxy
	Network Network       // for direct connections; nil: the host's own
	Rule    Rule          // for direct connections
	Proxy   string        // that is used for every name; "": those of the environment
	Timeout time.Duration // to resolve and connect; 0: DefaultConnectTimeout
}

// Route is the way that a connection goes.
type Route struct {
	Address netip.AddrPort // that was connected to; not valid behind a proxy
	Proxy   string         // its scheme and host, without a password; "" if direct
}

// String returns the address or the proxy.
func (r Route) String() string {
	if r.Proxy != "" {
		return r.Proxy
	}
	return r.Address.String()
}

// Dial connects to a port of a name.
func (d *NameDialer) Dial(ctx context.Context, name string, port int) (net.Conn, Route, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Timeout, DefaultConnectTimeout))
	defer cancel()
	address := net.JoinHostPort(name, strconv.Itoa(port))
	proxy, err := d.proxy(address, port)
	if err != nil {
		return nil, Route{}, err
	}
	if proxy != nil {
		conn, err := d.Host.dialProxy(ctx, proxy, address)
		return conn, Route{Proxy: proxy.Scheme + "://" + proxy.Host}, err
	}
	direct := &Dialer{Network: d.Network, Rule: d.Rule, Timeout: d.Timeout}
	addresses, err := direct.Resolve(ctx, name+".") // with the dot no search domain of this host is appended
	if err != nil {
		return nil, Route{}, err
	}
	conn, to, err := direct.connect(ctx, addresses, uint16(port))
	return conn, Route{Address: to}, err
}

// proxy returns the proxy for an address; nil: none.
func (d *NameDialer) proxy(address string, port int) (*url.URL, error) {
	if d.Proxy != "" {
		return parseProxy(d.Proxy)
	}
	scheme := "https"
	if port == 80 {
		scheme = "http"
	}
	return d.Host.proxies.For(&url.URL{Scheme: scheme, Host: address})
}
