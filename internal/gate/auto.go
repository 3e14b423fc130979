package gate

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// ApplyPassing collects and applies what passes without a person, for the mode auto.
// Unless it is the last time, what changed since the collection before waits: it may
// still be written to. Many deletions wait for a person. Applied is nil if nothing
// was applied.
func (g *Gate) ApplyPassing(ctx context.Context, by string, last bool) (*Set, *Applied, error) {
	earlier, err := g.Last()
	if err != nil && !errors.Is(err, ErrNoSet) {
		return nil, nil, err
	}
	set, err := g.Collect(ctx)
	if err != nil {
		return nil, nil, err
	}
	choices := set.settled(earlier, last, true)
	if len(choices) == 0 {
		return set, nil, nil
	}
	applied, err := g.Approve(ctx, choices, Decision{By: by})
	if errors.Is(err, ErrManyDeletions) {
		if choices = set.settled(earlier, last, false); len(choices) == 0 {
			return set, nil, nil
		}
		applied, err = g.Approve(ctx, choices, Decision{By: by})
	}
	if err != nil {
		return nil, nil, err
	}
	set, err = g.Last()
	return set, applied, err
}

// settled returns choices of what passes and is as in an earlier set.
func (s *Set) settled(earlier *Set, all, deletions bool) (choices []Choice) {
	known := map[string]string{}
	if earlier != nil {
		for i := range earlier.Entries {
			known[earlier.Entries[i].Path] = earlier.Entries[i].identity()
		}
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Verdict == Pass && (all || known[e.Path] == e.identity()) && (deletions || e.Kind != overlay.Deleted) {
			choices = append(choices, Choice{e.Path, e.SHA256})
		}
	}
	return choices
}
