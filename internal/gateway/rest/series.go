package rest

import (
	"errors"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// seriesPeriod is how far a series goes back that does not say.
const seriesPeriod = 30 * 24 * time.Hour

// runCalls lists the calls of models of a run.
func (s *Server) runCalls(c *call, _, _ *none) (*api.ModelCalls, error) {
	r, err := c.run()
	if err != nil {
		return nil, err
	}
	calls, err := s.Ledger.Calls(c.ctx(), usage.Filter{Run: r.ID})
	if err != nil {
		return nil, err
	}
	answer := &api.ModelCalls{Calls: []api.ModelCall{}}
	for i := range calls {
		if c.caller.Sees(calls[i].Subject.Account) {
			answer.Calls = append(answer.Calls, callOf(&calls[i]))
		}
	}
	return answer, nil
}

func callOf(s *usage.Stored) api.ModelCall {
	cost, billed := s.Final()
	return api.ModelCall{
		ID: s.ID, At: s.At, Asked: s.Asked, Model: s.Model, Dialect: s.Dialect, Status: s.Status, Input: s.Tokens.Input, Cached: s.Tokens.CachedInput,
		CacheWrite: s.Tokens.CacheWrite, Output: s.Tokens.Output, Reasoning: s.Tokens.Reasoning, MicroUSD: cost, Billed: billed, Priced: s.Priced, Crashed: s.Crashed,
	}
}

// costSeries answers what was spent over time.
func (s *Server) costSeries(c *call, q *api.SeriesQuery, _ *none) (*api.CostSeries, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	f := usage.Filter{Account: account}
	if f.Since, f.Until, err = parsePeriod(q.Since, q.Until); err != nil {
		return nil, err
	}
	if f.Since.IsZero() {
		f.Since = time.Now().Add(-seriesPeriod)
	}
	bucket := 24 * time.Hour
	if q.Bucket == "hour" {
		bucket = time.Hour
	}
	points, err := s.Ledger.Series(c.ctx(), f, q.By, bucket)
	if errors.Is(err, usage.ErrTooManyPoints) {
		return nil, &api.Problem{Status: http.StatusUnprocessableEntity, Code: "too_many_points", Detail: err.Error(), Hint: errhint.Of(err)}
	}
	answer := &api.CostSeries{Points: []api.CostPoint{}}
	for _, p := range points {
		answer.Points = append(answer.Points, api.CostPoint(p))
	}
	return answer, err
}
