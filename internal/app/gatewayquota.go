package app

import (
	"context"
	"fmt"
	"sync"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// quotas hold what callers may take of what their accounts have, while it is being
// taken: a sandbox that is about to be made has no row yet.
type quotas struct {
	mu     sync.Mutex
	making map[string]map[string]int // sandboxes by account, and how many want to make each
	runs   map[string]session.Quota  // of runs of this process
}

// holdRoom refuses to make the sandboxes of a plan if the account would then have
// more than it may. Release it when they are made, or not.
func (a *App) holdRoom(ctx context.Context, who Subject, p *plan.Plan) (release func(), err error) {
	if who.MostBoxes == 0 {
		return func() {}, nil
	}
	names := []string{p.Spec.Name}
	if p.Net != nil {
		names = append(names, p.Net.Name)
	}
	q := &a.quotas
	q.mu.Lock()
	defer q.mu.Unlock()
	there, err := a.boxesOf(ctx, who.Account)
	if err != nil {
		return nil, err
	}
	for name := range q.making[who.Account] {
		there[name] = true
	}
	alive := len(there)
	for _, name := range names {
		if there[name] = true; len(there) > alive && len(there) > who.MostBoxes {
			return nil, fmt.Errorf("%w: %d of %d sandboxes are alive", access.ErrQuota, alive, who.MostBoxes)
		}
	}
	q.count(who.Account, names, 1)
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.count(who.Account, names, -1)
	}, nil
}

func (q *quotas) count(account string, names []string, by int) {
	if q.making == nil {
		q.making = map[string]map[string]int{}
	}
	if q.making[account] == nil {
		q.making[account] = map[string]int{}
	}
	for _, name := range names {
		if q.making[account][name] += by; q.making[account][name] == 0 {
			delete(q.making[account], name)
		}
	}
	if len(q.making[account]) == 0 {
		delete(q.making, account)
	}
}

// boxesOf are the names of an account's sandboxes.
func (a *App) boxesOf(ctx context.Context, account string) (map[string]bool, error) {
	all, err := a.registry.List(ctx, 0)
	names := map[string]bool{}
	for _, entry := range all {
		if entry.Account == account {
			names[entry.ContainerName] = true
		}
	}
	return names, err
}

// sandboxesOf counts what is alive of an account.
func (a *App) sandboxesOf(ctx context.Context, account string) (int, error) {
	names, err := a.boxesOf(ctx, account)
	return len(names), err
}

// limitRun remembers what a run may take until it is forgotten. Who asks for a run
// that is under way changes nothing.
func (q *quotas) limitRun(id string, quota session.Quota) (forget func()) {
	if quota == (session.Quota{}) {
		return func() {}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.runs == nil {
		q.runs = map[string]session.Quota{}
	}
	if _, limited := q.runs[id]; limited {
		return func() {}
	}
	q.runs[id] = quota
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.runs, id)
	}
}

// ofRun is what a run may take; one that nobody limited may take everything.
func (q *quotas) ofRun(id string) session.Quota {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.runs[id]
}
