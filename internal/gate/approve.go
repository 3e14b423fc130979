package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/audit"
)

// Choice is a change that a person approves, at the hash that was shown; "" for what
// has no content.
type Choice struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256,omitempty"`
}

// Decision is who approves, and how.
type Decision struct {
	By string
	// ConfirmDeletions allows to delete many files at once.
	ConfirmDeletions bool
}

// Applied is a batch that was applied.
type Applied struct {
	ID    string   `json:"id"`
	Files []string `json:"files"`
}

// Approve applies changes of the last set, all or none. They are applied as they were
// staged, whatever the sandbox has by now.
func (g *Gate) Approve(ctx context.Context, choices []Choice, d Decision) (*Applied, error) {
	entries, err := g.chosen(choices)
	if err != nil {
		return nil, err
	}
	base, err := g.openBase()
	if err != nil {
		return nil, err
	}
	defer base.close()
	if err := g.guardDeletions(base, entries, d.ConfirmDeletions); err != nil {
		return nil, err
	}
	steps, err := g.plan(base, entries)
	if err != nil {
		g.recordRefused(entries, d.By, err)
		return nil, err
	}
	b := &batch{id: newID(), by: d.By, steps: steps}
	if err := g.apply(ctx, b); err != nil {
		g.recordRefused(entries, d.By, err)
		return nil, err
	}
	return g.applied(b, entries, d.By)
}

// applied takes applied entries out of the last set.
func (g *Gate) applied(b *batch, entries []*Entry, by string) (*Applied, error) {
	result := &Applied{ID: b.id, Files: []string{}}
	for _, e := range entries {
		result.Files = append(result.Files, e.Path)
		g.record(audit.FileEvent{Event: "applied", Batch: b.id, Path: e.Path, SHA256: e.SHA256, By: by, Reason: e.Overridden})
		delete(g.decided.Overrides, e.Path)
	}
	set, err := g.Last()
	if err != nil {
		return nil, err
	}
	set.Entries = slices.DeleteFunc(set.Entries, func(e Entry) bool { return slices.Contains(result.Files, e.Path) })
	return result, errors.Join(g.saveDecisions(), set.seal(), g.writeJSON(setName, set))
}

func (g *Gate) recordRefused(entries []*Entry, by string, why error) {
	for _, e := range entries {
		g.record(audit.FileEvent{Event: "refused", Path: e.Path, SHA256: e.SHA256, By: by, Reason: why.Error()})
	}
}

// chosen finds the entries of choices, and refuses what may not be applied.
func (g *Gate) chosen(choices []Choice) ([]*Entry, error) {
	set, err := g.Last()
	if err != nil {
		return nil, err
	}
	if len(choices) == 0 {
		return nil, fmt.Errorf("nothing %w", ErrUnknownPath)
	}
	var entries []*Entry
	for _, choice := range choices {
		e := set.find(choice.Path)
		switch {
		case e == nil:
			return nil, fmt.Errorf("%q %w", choice.Path, ErrUnknownPath)
		case choice.SHA256 != e.SHA256:
			return nil, fmt.Errorf("%q %w", choice.Path, ErrOtherHash)
		case e.Verdict == Conflict:
			return nil, errors.Join(&ConflictError{[]string{e.Path}}, errors.New(e.why()))
		case e.Verdict != Pass:
			return nil, fmt.Errorf("%q %w (%s): %s", choice.Path, ErrNotAllowed, e.Verdict, e.why())
		}
		if !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}
