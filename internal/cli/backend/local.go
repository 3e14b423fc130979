package backend

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	money "github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// local works in this process, on the state directory.
type local struct {
	env *console.Env
	app *app.App
}

// runStore returns the stored runs, after those of dead processes were ended.
func (d local) runStore(ctx context.Context) (run.Store, error) {
	runs, err := openRunStore(ctx, d.env, d.app)
	if err != nil {
		return run.Store{}, err
	}
	return d.app.Models.RunStore(), runs.Close()
}

func (d local) List(ctx context.Context, f run.Filter) ([]run.Receipt, error) {
	store, err := d.runStore(ctx)
	if err != nil {
		return nil, err
	}
	list, err := store.List(ctx, f)
	if err == nil && d.app.Models.SettleRuns(ctx, list, showPatience) {
		return store.List(ctx, f)
	}
	return list, err
}

// showPatience is how long show waits for the provider's bill.
const showPatience = 3 * time.Second

func (d local) Show(ctx context.Context, id string) (*run.Receipt, error) {
	store, err := d.runStore(ctx)
	if err != nil {
		return nil, err
	}
	r, err := store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.Bill.Provisional {
		if bill, err := d.app.Models.RunBill(ctx, r.ID, showPatience); err == nil {
			r.Bill = bill
		}
	}
	return r, nil
}

// eventsLook is how often a followed run is read from the store.
const eventsLook = 100 * time.Millisecond

func (d local) Events(ctx context.Context, id string, after int64, follow bool, tell func(*run.Event) error) error {
	store, err := d.runStore(ctx)
	if err != nil {
		return err
	}
	for {
		r, err := store.Get(ctx, id) // before its events: what comes after them is in the next look
		if err != nil {
			return err
		}
		page, err := store.Events(ctx, r.ID, after)
		if err != nil {
			return err
		}
		for i := range page {
			after = page[i].Seq
			if err := tell(&page[i]); err != nil {
				return err
			}
		}
		switch {
		case len(page) > 0:
			continue
		case !follow || r.Step == run.Over:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(eventsLook):
		}
	}
}

func (d local) Costs(ctx context.Context, f money.Filter) ([]money.RunCost, error) {
	return d.app.Models.RunCosts(ctx, f)
}

func (d local) Start(ctx context.Context, t *execute.Task, watch RunWatcher) (r *run.Receipt, err error) {
	runs, err := openRunStore(ctx, d.env, d.app)
	if err != nil {
		return nil, err
	}
	defer func() { err = console.FirstOf(err, runs.Close()) }()
	watch.Scripted(runs.Scripted)
	return runs.Do(ctx, t, watch.Event)
}

func (d local) Sandboxes(ctx context.Context, limit int) ([]provide.Listed, int, error) {
	list, total, err := d.app.List(ctx, limit)
	d.app.AddDrift(list)
	return list, total, err
}

func (d local) Choose(ctx context.Context, s provide.Selector) ([]*sandbox.Entry, error) {
	return d.app.Select(ctx, s)
}

func (d local) Recreate(ctx context.Context, entry *sandbox.Entry, discard bool) provide.Recreated {
	return d.app.Recreate(ctx, entry, discard)
}
