package access

import "github.com/atoll-run/atoll/internal/membudget"

// Defaults of the memory for requests that arrive, over both protocols.
const (
	DefaultInbound         = 256 << 20
	DefaultInboundPerToken = 64 << 20
)

// NewInbound returns the budget with the default numbers.
func NewInbound() *membudget.Budget {
	return membudget.New(DefaultInbound, DefaultInboundPerToken)
}
