package rest

import (
	"context"
	"slices"
	"time"

	"github.com/atoll-run/atoll/api"
)

// Settings reads the configuration and what it limits.
type Settings interface {
	// Config returns the settings of an agent; "" is the default one.
	Config(agent string) (*api.Config, error)
	// Images lists the images that need no engine.
	Images(ctx context.Context) ([]api.Image, error)
	// Accounts lists the accounts that something was done for.
	Accounts(ctx context.Context) ([]string, error)
	// Budgets returns the limits of an account and what was spent.
	Budgets(ctx context.Context, account string) ([]api.SpendBudget, error)
}

// showConfig is refused to callers bound to an account: it is the operator's.
func (s *Server) showConfig(c *call, q *api.ConfigQuery, _ *none) (*api.Config, error) {
	if err := c.requireUnbound(); err != nil {
		return nil, err
	}
	if !slices.Contains(s.AgentNames, q.Agent) && q.Agent != "" {
		return nil, invalid(api.FieldError{Pointer: "agent", Detail: "is not one of the configuration"})
	}
	return s.Settings.Config(q.Agent)
}

func (s *Server) listImages(c *call, _, _ *none) (*api.Images, error) {
	if err := c.requireUnbound(); err != nil {
		return nil, err
	}
	list, err := s.Settings.Images(c.ctx())
	return &api.Images{Images: append([]api.Image{}, list...)}, err
}

// maxBudgets bounds the accounts whose budgets are shown at once.
const maxBudgets = 1000

// budgets shows the limits of the accounts that the caller sees.
func (s *Server) budgets(c *call, _, _ *none) (*api.Budgets, error) {
	accounts := []string{c.caller.Account}
	if !c.isBound() {
		all, err := s.Settings.Accounts(c.ctx())
		if err != nil {
			return nil, err
		}
		accounts = all[:min(len(all), maxBudgets)]
	}
	answer := &api.Budgets{Budgets: []api.SpendBudget{}}
	for _, account := range accounts {
		list, err := s.Settings.Budgets(c.ctx(), account)
		if err != nil {
			return nil, err
		}
		for i := range list {
			list[i].Expected = expected(&list[i], time.Now().UTC())
		}
		answer.Budgets = append(answer.Budgets, list...)
	}
	return answer, nil
}

// expected returns what a day costs if it goes on as it has until now.
func expected(b *api.SpendBudget, now time.Time) int64 {
	passed := now.Sub(now.Truncate(24 * time.Hour))
	if b.Scope != "day" || passed < time.Hour { // too early to say
		return 0
	}
	return int64(float64(b.SpentMicro) * float64(24*time.Hour) / float64(passed))
}
