package bench

import "github.com/atoll-run/atoll/cmd/atoll-bench/bench/egressstage"

// staged makes a report of what a stage measured.
func staged(bench string) func(*egressstage.Result, error) (*Report, error) {
	return func(result *egressstage.Result, err error) (*Report, error) {
		if err != nil {
			return nil, err
		}
		r := &Report{Bench: bench}
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
}
