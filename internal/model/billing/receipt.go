package billing

import (
	"github.com/atoll-run/atoll/internal/model/usage"
)

// Receipt is the cost of a run, by LiteLLM's figures where they are known.
// Provisional counts calls whose figure is not.
type Receipt struct {
	Run         string       `json:"run"`
	Calls       int          `json:"calls"`
	MicroUSD    int64        `json:"microUSD"`
	Tokens      usage.Tokens `json:"tokens"`
	Billed      int          `json:"billed"`   // calls whose figure is LiteLLM's
	Unpriced    int          `json:"unpriced"` // calls without a known cost
	Provisional bool         `json:"provisional"`
}

// Sum adds up the calls of a run.
func Sum(run string, calls []usage.Stored) *Receipt {
	r := &Receipt{Run: run, Calls: len(calls)}
	for i := range calls {
		r.add(&calls[i])
	}
	r.Provisional = r.Billed < r.Calls
	return r
}

func (r *Receipt) add(s *usage.Stored) {
	figure, billed := s.Final()
	r.MicroUSD += figure
	if billed {
		r.Billed++
	}
	if !s.Priced && !billed {
		r.Unpriced++
	}
	t := &r.Tokens
	t.Input += s.Tokens.Input
	t.CachedInput += s.Tokens.CachedInput
	t.CacheWrite += s.Tokens.CacheWrite
	t.Output += s.Tokens.Output
	t.Reasoning += s.Tokens.Reasoning
}
