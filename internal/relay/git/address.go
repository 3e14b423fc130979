package git

import (
	"cmp"
	"context"
	"net/netip"
	"net/url"
	"strings"

	"github.com/atoll-run/atoll/internal/outbound"
)

// addressSettings resolve the server's name with the host's dialer, which refuses
// metadata services, and have git connect to the addresses that were found.
// Behind a proxy the name is the proxy's to resolve.
func (to *Remote) addressSettings(ctx context.Context) ([]string, error) {
	u, err := url.Parse(to.URL)
	if err != nil || u.Host == "" {
		return nil, nil //nolint:nilerr // a directory; protocol refuses what is neither
	}
	proxies, err := outbound.ProxiesOf(to.variable)
	if err != nil {
		return nil, err
	}
	if proxy, err := proxies.For(u); err != nil || proxy != nil {
		return nil, err
	}
	addresses, err := new(outbound.Dialer).Resolve(ctx, u.Hostname())
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return nil, nil // git connects to what was checked
	}
	port := cmp.Or(u.Port(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
	return []string{"-c", "http.curloptResolve=" + u.Hostname() + ":" + port + ":" + joinAddresses(addresses)}, nil
}

// variable returns one of the variables that name the host's proxies.
func (to *Remote) variable(name string) string {
	for _, pair := range to.Env {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// joinAddresses writes addresses as curl wants them.
func joinAddresses(addresses []netip.Addr) string {
	texts := make([]string, len(addresses))
	for i, a := range addresses {
		if texts[i] = a.String(); a.Is6() {
			texts[i] = "[" + a.String() + "]"
		}
	}
	return strings.Join(texts, ",")
}
