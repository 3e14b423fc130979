package app

import (
	"context"
	"strings"
)

// examineOutbound shows the proxies, without passwords, and the certificates.
func (a *App) examineOutbound(context.Context) []Check {
	const name = "outbound"
	host, err := a.Outbound()
	if err != nil {
		return []Check{bad(name, err)}
	}
	parts := []string{"no proxy"}
	if proxies := host.Proxies().String(); proxies != "" {
		parts[0] = proxies
	}
	if host.CAFile() != "" {
		parts = append(parts, "also trusts "+host.CAFile())
	}
	return []Check{good(name, "%s", strings.Join(parts, "; "))}
}
