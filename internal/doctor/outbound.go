package doctor

import (
	"context"
	"strings"
)

// checkOutbound shows the proxies, without passwords, and the certificates.
func (d *Doctor) checkOutbound(context.Context) []Check {
	const name = "outbound"
	host, err := d.Outbound()
	if err != nil {
		return []Check{failedWith(name, err)}
	}
	parts := []string{"no proxy"}
	if proxies := host.Proxies().String(); proxies != "" {
		parts[0] = proxies
	}
	if host.CAFile() != "" {
		parts = append(parts, "also trusts "+host.CAFile())
	}
	return []Check{passed(name, "%s", strings.Join(parts, "; "))}
}
