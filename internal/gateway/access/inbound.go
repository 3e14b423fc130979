package access

import "github.com/atoll-run/atoll/internal/membudget"

// The memory of requests that arrive, over both protocols, unless others are set.
const (
	DefaultInbound         = 256 << 20
	DefaultInboundPerToken = 64 << 20
)

// NewInbound returns the budget with the default numbers.
func NewInbound() *membudget.Budget {
	return membudget.New(DefaultInbound, DefaultInboundPerToken)
}
