package outbound

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/atoll-run/atoll/internal/errhint"
)

// proxySchemes are the kinds of proxies that net/http speaks to.
var proxySchemes = []string{"http", "https", "socks5", "socks5h"}

// Proxies are the proxies that the environment names.
type Proxies struct {
	config httpproxy.Config
	find   func(*url.URL) (*url.URL, error)
}

// ProxiesOf reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY, in upper or lower case.
// A proxy whose address cannot be read is an error: without it requests would
// silently go around the proxy.
func ProxiesOf(getenv func(string) string) (*Proxies, error) {
	read := func(name string) string { return cmp.Or(getenv(name), getenv(strings.ToLower(name))) }
	p := &Proxies{config: httpproxy.Config{HTTPSProxy: read("HTTPS_PROXY"), HTTPProxy: read("HTTP_PROXY"), NoProxy: read("NO_PROXY")}}
	for name, address := range map[string]string{"HTTPS_PROXY": p.config.HTTPSProxy, "HTTP_PROXY": p.config.HTTPProxy} {
		if _, err := parseProxy(address); err != nil {
			return nil, errhint.With(fmt.Errorf("%s: %w", name, err), "write it as http://host:port")
		}
	}
	p.find = p.config.ProxyFunc()
	return p, nil
}

// parseProxy reads the address of a proxy as httpproxy does: the scheme may be
// missing. Errors do not quote the address, which may hold a password.
func parseProxy(address string) (*url.URL, error) {
	if address == "" {
		return nil, nil
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("the proxy's address cannot be read")
	}
	if !slices.Contains(proxySchemes, u.Scheme) {
		return nil, fmt.Errorf("proxies of the kind %q are not supported", u.Scheme)
	}
	return u, nil
}

// For returns the proxy for a request to u; nil means that there is none.
// Loopback addresses and localhost never have one.
func (p *Proxies) For(u *url.URL) (*url.URL, error) { return p.find(u) }

// Environ returns the variables of these proxies, for programs that the host
// runs. They may hold a password.
func (p *Proxies) Environ() (list []string) {
	add := func(value string, names ...string) {
		for _, name := range names {
			if value != "" {
				list = append(list, name+"="+value)
			}
		}
	}
	add(p.config.HTTPSProxy, "https_proxy", "HTTPS_PROXY")
	add(p.config.HTTPProxy, "http_proxy") // CGI programs get HTTP_PROXY from a request's header, so it is not trusted
	add(p.config.NoProxy, "no_proxy", "NO_PROXY")
	return list
}

// String describes the proxies without names and passwords; "" if there are none.
func (p *Proxies) String() string {
	var parts []string
	for _, one := range []struct{ name, address string }{{"HTTPS_PROXY", p.config.HTTPSProxy}, {"HTTP_PROXY", p.config.HTTPProxy}} {
		if u, err := parseProxy(one.address); err == nil && u != nil {
			parts = append(parts, one.name+" "+u.Scheme+"://"+u.Host)
		}
	}
	if len(parts) > 0 && p.config.NoProxy != "" {
		parts = append(parts, "NO_PROXY "+p.config.NoProxy)
	}
	return strings.Join(parts, ", ")
}
