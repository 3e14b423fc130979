package provide

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/outbound"
)

// Outbound returns how this host reaches servers outside: the proxies of its
// environment, and the certificates that outbound.caFile adds.
func (s *Settings) Outbound() (*outbound.Host, error) {
	file, err := s.Config.OutboundCA()
	if err != nil {
		return nil, fmt.Errorf("outbound.caFile: %w", err)
	}
	return outbound.NewHost(outbound.Options{Getenv: s.Getenv, CAFile: file})
}
