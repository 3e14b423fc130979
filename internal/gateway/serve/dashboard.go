package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"

	"github.com/atoll-run/atoll/internal/gateway/dashboard"
)

// pages returns the handler of the dashboard before the next one, or the next one alone
// where the dashboard is switched off.
func (g *Gateway) pages(next http.Handler) (http.Handler, error) {
	if !g.config.Dashboard {
		return next, nil
	}
	return dashboard.New(next)
}

// cookieName returns the name of the cookie of web logins. It differs between state
// directories: cookies of one address are shared by all its ports.
func cookieName(stateDir string, secure bool) string {
	sum := sha256.Sum256([]byte(stateDir))
	name := "atoll_" + hex.EncodeToString(sum[:6])
	if secure {
		return "__Host-" + name // browsers refuse it without TLS and from other hosts
	}
	return name
}

// pageURL returns the address of the dashboard; "" if web browsers reach none.
func (g *Gateway) pageURL() string {
	if at := g.address(); at != "" {
		return at + dashboard.Prefix
	}
	return ""
}

// port returns the port of the first listener that is not the socket; 0 if there is none.
func (g *Gateway) port() int {
	for _, address := range g.Addresses() {
		if at, err := netip.ParseAddrPort(address); err == nil {
			return int(at.Port())
		}
	}
	return 0
}

// address returns the URL of the first listener that is not the socket; "" if there is
// none.
func (g *Gateway) address() string {
	scheme := "http://"
	if g.config.TLS.CertFile != "" {
		scheme = "https://"
	}
	for _, address := range g.Addresses() {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			continue // the socket
		}
		host, port, _ := net.SplitHostPort(address) // it was parsed
		if at.Addr().IsUnspecified() {
			host = "localhost"
		}
		return scheme + net.JoinHostPort(host, port)
	}
	return ""
}
