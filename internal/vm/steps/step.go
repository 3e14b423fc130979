package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Step is a part of the set-up.
type Step struct {
	Name    string
	Needs   []string // steps that come before it
	Skip    string   // why it is not needed; "" if it is
	Actions []Action
	Edits   []*Edit // after Actions
	// After are actions that are done anew whenever one of Actions was.
	After []Action
}

// Guest runs scripts inside as root.
type Guest interface {
	Run(ctx context.Context, script string, in io.Reader) (string, error)
}

// Result is what became of a step.
type Result string

// The results of steps.
const (
	Unchanged Result = "unchanged"
	Changed   Result = "changed"
	Skipped   Result = "skipped"
)

// Report is called for each step when it is over.
type Report func(step *Step, result Result)

// Plan returns the steps in their order, from the named one on ("" is the first).
func Plan(list []Step, from string) ([]Step, error) {
	ordered, err := Order(list)
	if err != nil || from == "" {
		return ordered, err
	}
	begin := slices.IndexFunc(ordered, func(s Step) bool { return s.Name == from })
	if begin < 0 {
		return nil, errhint.With(fmt.Errorf("there is no step %q", from), "`atoll vm status` lists them")
	}
	return ordered[begin:], nil
}

// Run does the steps in their order, from the named one on ("" is the first).
func Run(ctx context.Context, guest Guest, list []Step, from string, report Report) error {
	planned, err := Plan(list, from)
	if err != nil {
		return err
	}
	for i := range planned {
		result, err := planned[i].run(ctx, guest)
		if err != nil {
			return errhint.With(fmt.Errorf("step %s: %w", planned[i].Name, err), "mend it and run `atoll vm up` again: what is done stays done")
		}
		report(&planned[i], result)
	}
	return nil
}

// ensurer is an action or a change of a file.
type ensurer interface {
	ensure(ctx context.Context, guest Guest) (changed bool, err error)
}

// parts are what a step ensures, in its order.
func (s *Step) parts() (list []ensurer) {
	for i := range s.Actions {
		list = append(list, &s.Actions[i])
	}
	for _, e := range s.Edits {
		list = append(list, e)
	}
	return list
}

// run does what the checks find missing.
func (s *Step) run(ctx context.Context, guest Guest) (Result, error) {
	if s.Skip != "" {
		return Skipped, nil
	}
	result := Unchanged
	for _, part := range s.parts() {
		changed, err := part.ensure(ctx, guest)
		if err != nil {
			return "", err
		}
		if changed {
			result = Changed
		}
	}
	for _, a := range s.After {
		if result == Changed {
			if _, err := guest.Run(ctx, a.Apply, nil); err != nil {
				return "", err
			}
		} else if changed, err := a.ensure(ctx, guest); err != nil || changed {
			return Changed, err
		}
	}
	return result, nil
}

// errStill is what a check says that fails after what it asks for was done.
var errStill = errors.New("it was done, and is not so")

// ensure does an action if its check fails, and checks again.
func (a *Action) ensure(ctx context.Context, guest Guest) (changed bool, err error) {
	if _, err := guest.Run(ctx, a.Check, nil); err == nil {
		return false, nil
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if _, err := guest.Run(ctx, a.Apply, bytes.NewReader(a.Stdin)); err != nil {
		return false, err
	}
	if _, err := guest.Run(ctx, a.Check, nil); err != nil {
		return true, errors.Join(errStill, err)
	}
	return true, nil
}

// Order returns the steps so that each comes after those that it needs, and otherwise as
// they are listed.
func Order(list []Step) (ordered []Step, err error) {
	placed := map[string]bool{}
	names := map[string]bool{}
	for _, s := range list {
		if names[s.Name] {
			return nil, fmt.Errorf("two steps have the name %q", s.Name)
		}
		names[s.Name] = true
	}
	for rest := slices.Clone(list); len(rest) > 0; {
		i := slices.IndexFunc(rest, func(s Step) bool {
			return !slices.ContainsFunc(s.Needs, func(n string) bool { return !placed[n] })
		})
		if i < 0 {
			return nil, errhint.With(fmt.Errorf("step %s needs %v, which never come before it", rest[0].Name, rest[0].Needs), "name steps that exist, and no circle of them")
		}
		ordered = append(ordered, rest[i])
		placed[rest[i].Name] = true
		rest = slices.Delete(rest, i, i+1)
	}
	return ordered, nil
}
