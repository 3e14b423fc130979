package backend

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	money "github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
)

// runPages is how many pages of runs are searched for one that begins with a word.
const runPages = 10

// WithRun calls do with an id and, if no run has it, with that of the one run
// whose id begins so.
func WithRun(ctx context.Context, b Runs, id string, do func(id string) error) error {
	err := do(id)
	if !errors.Is(err, run.ErrNotFound) || id == "" {
		return NoSuchRun(err)
	}
	var all []console.Named
	var f run.Filter
	for range runPages {
		page, listErr := b.List(ctx, f)
		if listErr != nil || len(page) == 0 {
			break
		}
		for i := range page {
			all = append(all, console.Named{Name: page[i].ID})
		}
		f.Before = page[len(page)-1].ID
	}
	full, pickErr := console.Pick("run", id, all)
	switch {
	case errors.Is(pickErr, console.ErrNoneNamed):
		return NoSuchRun(err)
	case pickErr != nil:
		return pickErr
	}
	return NoSuchRun(do(full))
}

// PickCosts returns the costs of the run that word names: none if it asked no model.
func PickCosts(ctx context.Context, b Runs, word string, runs []money.RunCost) ([]money.RunCost, error) {
	var all []console.Named
	for _, r := range runs {
		all = append(all, console.Named{Name: r.Run})
	}
	id, err := console.Pick("run", word, all)
	if errors.Is(err, console.ErrNoneNamed) {
		err = WithRun(ctx, b, word, func(word string) error {
			r, err := b.Show(ctx, word)
			if err == nil {
				id = cmp.Or(r.KnownAs, r.ID)
			}
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r money.RunCost) bool { return r.Run != id }), nil
}

// NoSuchRun adds the verb that lists runs to the error of an unknown one.
func NoSuchRun(err error) error {
	if errors.Is(err, run.ErrNotFound) {
		return errhint.With(err, "`atoll runs list` shows those that there are")
	}
	return err
}
