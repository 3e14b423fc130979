package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/outbound"
)

// Outbound returns how this host reaches servers outside: the proxies of its
// environment, and the certificates that outbound.caFile adds.
func (s *Settings) Outbound() (*outbound.Host, error) {
	file, err := s.Config.OutboundCA()
	if err != nil {
		return nil, fmt.Errorf("outbound.caFile: %w", err)
	}
	return outbound.NewHost(outbound.Options{Getenv: s.getenv, CAFile: file})
}

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
