package rest

import (
	"cmp"
	"context"
	"encoding/json"
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
	// AuditTail returns the last records that match.
	AuditTail(most int, match func(json string) bool) ([]audit.Entry, error)
}

func (s *Server) costs(c *call, q *api.CostQuery, _ *none) (*api.Costs, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	f := usage.Filter{Account: account, Run: q.Run}
	for name, p := range map[string]struct {
		text string
		at   *time.Time
	}{"since": {q.Since, &f.Since}, "until": {q.Until, &f.Until}} {
		if p.text == "" {
			continue
		}
		if *p.at, err = time.Parse(time.RFC3339Nano, p.text); err != nil {
			return nil, invalid(api.FieldError{Pointer: name, Detail: "must be a time such as 2026-01-31T12:00:00Z"})
		}
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

// auditTail returns the last records; a caller bound to an account gets those of
// its account only.
func (s *Server) auditTail(c *call, q *api.AuditQuery, _ *none) (*api.Audit, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	match := func(text string) bool {
		var r struct{ Account, Run, KnownAs, Denied string }
		return json.Unmarshal([]byte(text), &r) == nil && c.caller.Sees(r.Account) &&
			(account == "" || r.Account == account) && (q.Run == "" || r.Run == q.Run || r.KnownAs == q.Run) && (!q.Denied || r.Denied != "")
	}
	entries, err := s.Ledger.AuditTail(cmp.Or(q.Limit, 100), match)
	if err != nil {
		return nil, err
	}
	answer := &api.Audit{Records: []json.RawMessage{}}
	for _, e := range entries {
		answer.Records = append(answer.Records, json.RawMessage(e.JSON))
	}
	return answer, nil
}
