package rest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// Ledger reads the costs and the audit log.
type Ledger interface {
	Costs(ctx context.Context, f usage.Filter) ([]usage.RunCost, error)
	// Calls returns the calls of models that match, the oldest first.
	Calls(ctx context.Context, f usage.Filter) ([]usage.Stored, error)
	// Series returns what was spent over time.
	Series(ctx context.Context, f usage.Filter, by string, bucket time.Duration) ([]usage.Point, error)
	// AuditTail returns the last records that match.
	AuditTail(most int, match func(json string) bool) ([]audit.Entry, error)
	// VerifyAudit reads the whole audit log, and says whether it is whole.
	VerifyAudit(ctx context.Context) (*audit.Report, error)
}

func (s *Server) costs(c *call, q *api.CostQuery, _ *none) (*api.Costs, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	f := usage.Filter{Account: account, Run: q.Run}
	if f.Since, f.Until, err = parsePeriod(q.Since, q.Until); err != nil {
		return nil, err
	}
	runs, err := s.Ledger.Costs(c.ctx(), f)
	if err != nil {
		return nil, err
	}
	answer := &api.Costs{Accounts: []api.AccountCost{}, Runs: []api.CostOfRun{}}
	for i := range runs {
		if c.caller.Sees(runs[i].Account) {
			answer.Runs = append(answer.Runs, api.CostOfRun(runs[i]))
		}
	}
	answer.Accounts = byAccount(answer.Runs)
	return answer, nil
}

func byAccount(runs []api.CostOfRun) []api.AccountCost {
	sums := map[string]*api.AccountCost{}
	for _, r := range runs {
		sum := sums[r.Account]
		if sum == nil {
			sum = &api.AccountCost{Account: r.Account}
			sums[r.Account] = sum
		}
		sum.Runs++
		sum.Calls += r.Calls
		sum.Tokens += r.Tokens
		sum.MicroUSD += r.MicroUSD
		sum.Provisional += r.Provisional
		sum.Unpriced += r.Unpriced
	}
	list := []api.AccountCost{}
	for _, sum := range sums {
		list = append(list, *sum)
	}
	slices.SortFunc(list, func(a, b api.AccountCost) int { return strings.Compare(a.Account, b.Account) })
	return list
}
