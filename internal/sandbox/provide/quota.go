package provide

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// ErrQuota means that an account has as many sandboxes as it may.
var ErrQuota = errors.New("the token's quota is used up")

// beingMade counts the sandboxes that are about to be made: they have no row in
// the registry yet, and belong to their account's quota already.
type beingMade struct {
	mu    sync.Mutex
	names map[string]map[string]int // sandboxes by account, and how many callers want to make each
}

// holdQuota refuses to make the sandboxes of a plan if the account would then have
// more than it may. Release it when they are made, or not.
func (a *Installation) holdQuota(ctx context.Context, who Subject, p *plan.Plan) (release func(), err error) {
	if who.MostSandboxes == 0 {
		return func() {}, nil
	}
	names := []string{p.Spec.Name}
	if p.Net != nil {
		names = append(names, p.Net.Name)
	}
	q := &a.making
	q.mu.Lock()
	defer q.mu.Unlock()
	there, err := a.namesOf(ctx, who.Account)
	if err != nil {
		return nil, err
	}
	for name := range q.names[who.Account] {
		there[name] = true
	}
	alive := len(there)
	for _, name := range names {
		if there[name] = true; len(there) > alive && len(there) > who.MostSandboxes {
			return nil, fmt.Errorf("%w: %d of %d sandboxes are alive", ErrQuota, alive, who.MostSandboxes)
		}
	}
	q.count(who.Account, names, 1)
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.count(who.Account, names, -1)
	}, nil
}

func (q *beingMade) count(account string, names []string, by int) {
	if q.names == nil {
		q.names = map[string]map[string]int{}
	}
	if q.names[account] == nil {
		q.names[account] = map[string]int{}
	}
	for _, name := range names {
		if q.names[account][name] += by; q.names[account][name] == 0 {
			delete(q.names[account], name)
		}
	}
	if len(q.names[account]) == 0 {
		delete(q.names, account)
	}
}

// namesOf are the names of an account's sandboxes.
func (a *Installation) namesOf(ctx context.Context, account string) (map[string]bool, error) {
	all, err := a.Registry.NamesOf(ctx, account)
	names := map[string]bool{}
	for _, name := range all {
		names[name] = true
	}
	return names, err
}

// SandboxesOf counts what is alive of an account.
func (a *Installation) SandboxesOf(ctx context.Context, account string) (int, error) {
	names, err := a.namesOf(ctx, account)
	return len(names), err
}
