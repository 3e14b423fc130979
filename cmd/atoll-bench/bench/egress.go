package bench

import (
	"context"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/egressstage"
)

// egressBench measures connections out of a sandbox by name.
func egressBench(ctx context.Context, o Options) (*Report, error) {
	result, err := egressstage.Measure(ctx, o.Getenv, o.Self, o.Progress)
	if err != nil {
		return nil, err
	}
	r := &Report{Bench: "egress"}
	for _, m := range result.Series {
		r.Rows = append(r.Rows, row(m.Name, m.Unit, m.Samples))
	}
	for _, c := range result.Claims {
		claim := shown(c.Name, c.Value)
		if c.Limit != 0 {
			claim = atMost(c.Name, c.Value, c.Limit)
		}
		r.Ratios = append(r.Ratios, claim)
	}
	return r, nil
}
