package cli

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	money "github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// alone works in this process, with the state directory as it is.
type alone struct {
	env *env
	app *app.App
}

// book is what is written down about runs, after those of dead processes were
// ended.
func (d alone) book(ctx context.Context) (run.Store, error) {
	runs, err := d.env.openRuns(ctx, d.app)
	if err != nil {
		return run.Store{}, err
	}
	return d.app.RunStore(), runs.Close()
}

func (d alone) list(ctx context.Context, f run.Filter) ([]run.Receipt, error) {
	book, err := d.book(ctx)
	if err != nil {
		return nil, err
	}
	list, err := book.List(ctx, f)
	if err == nil && d.app.SettleRuns(ctx, list, showPatience) {
		return book.List(ctx, f)
	}
	return list, err
}

// showPatience is how long show waits for the provider's books.
const showPatience = 3 * time.Second

func (d alone) show(ctx context.Context, id string) (*run.Receipt, error) {
	book, err := d.book(ctx)
	if err != nil {
		return nil, err
	}
	r, err := book.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.Bill.Provisional {
		if bill, err := d.app.RunBill(ctx, r.ID, showPatience); err == nil {
			r.Bill = bill
		}
	}
	return r, nil
}

// eventsLook is how often a run that is followed is looked at.
const eventsLook = 100 * time.Millisecond

func (d alone) events(ctx context.Context, id string, after int64, follow bool, tell func(*run.Event) error) error {
	book, err := d.book(ctx)
	if err != nil {
		return err
	}
	for {
		r, err := book.Get(ctx, id) // before its events: what comes after them is in the next look
		if err != nil {
			return err
		}
		page, err := book.Events(ctx, r.ID, after)
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

func (d alone) costs(ctx context.Context, f money.Filter) ([]money.RunCost, error) {
	return d.app.RunCosts(ctx, f)
}

func (d alone) start(ctx context.Context, t *app.Task, view *runView) (r *run.Receipt, err error) {
	runs, err := d.env.openRuns(ctx, d.app)
	if err != nil {
		return nil, err
	}
	defer func() { err = firstOf(err, runs.Close()) }()
	view.scripted = runs.Scripted
	return runs.Do(ctx, t, view.event)
}

func (d alone) sandboxes(ctx context.Context, limit int) ([]app.Listed, int, error) {
	return d.app.List(ctx, limit)
}

func (d alone) choose(ctx context.Context, s app.Selector) ([]*sandbox.Entry, error) {
	return d.app.Select(ctx, s)
}

func (d alone) recreate(ctx context.Context, entry *sandbox.Entry, discard bool) app.Recreated {
	return d.app.Recreate(ctx, entry, discard)
}

func (d alone) prune(ctx context.Context, workspaces bool) (rows []pruned, silent, err error) {
	rows, err = prune(ctx, d.app, workspaces)
	if err != nil {
		return nil, nil, err
	}
	return rows, d.app.EnginesAnswer(ctx), nil
}
