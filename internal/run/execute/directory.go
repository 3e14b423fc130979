package execute

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// onDirectory is the directory of a run, with the agent that it has there. It is empty
// for a run with a workspace of its own.
type onDirectory struct{ agent, path, below string }

// directoryOf returns the directory of a task, if its agent can work on one.
func (r *Runs) directoryOf(t *Task) onDirectory {
	variant, err := run.Find(r.Variants, t.Variant)
	if t.Directory == nil || t.Branch != "" || err != nil || !variant.OnDirectory {
		return onDirectory{}
	}
	return onDirectory{config.DirectoryAgent, t.Directory.Path, t.Directory.Sub}
}

// record returns the record of the overlay of a run on a directory.
func (p *Sandbox) record() *provide.RunOverlay {
	return &provide.RunOverlay{Run: p.order.Run, Directory: p.order.Directory}
}

// beginOverlay writes down whose overlay it will be, before it is made, and removes
// those of earlier runs that are due.
func (p *Sandbox) beginOverlay(ctx context.Context) error {
	e := p.runs.executor
	if p.order.Directory == "" {
		return nil
	}
	e.RemoveDecidedRuns(ctx)
	planned, err := e.Plan(e.subject(&p.order))
	if err != nil {
		return err
	}
	return e.RecordRunOverlay(planned, p.record())
}

// directorySubject is subject for a run on a directory.
func (e *Executor) directorySubject(o *run.SandboxRequest) provide.Subject {
	who := e.RunSubject(&provide.RunOverlay{Run: o.Run, Directory: o.Directory})
	asOfDirectory := who.Adjust
	who.Memory, who.Adjust = o.Memory, func(agent *config.Agent) {
		asOfDirectory(agent)
		limitRun(agent, o)
	}
	return who
}

// noteChanges notes in the receipt what a run changed in its overlay. What cannot be
// collected is a warning: the overlay stays.
func (p *Sandbox) noteChanges(ctx context.Context, receipt *run.Receipt) {
	e := p.runs.executor
	if _, err := e.Overlays(ctx, e.subject(&p.order)); errors.Is(err, overlay.ErrNone) {
		return // it ended before it had a sandbox
	}
	receipt.Changes = &run.Changes{Directory: p.order.Directory}
	if p.ready != nil {
		p.ready.Release() // applies what passes, where the configuration says so
		p.ready = nil
	}
	all, err := e.sync.Trees(ctx, &api.SyncSubject{Run: p.order.Run})
	if err != nil {
		receipt.Warnings = append(receipt.Warnings, "what changed in "+p.order.Directory+" is not known: "+err.Error())
		return
	}
	p.unchanged = true
	for i := range all.Trees {
		t := &all.Trees[i]
		receipt.Changes.Add(t)
		p.unchanged = p.unchanged && !receipt.Changes.Waiting() && onlyGit(t.Withheld) && (i > 0 || t.Commits != nil && len(t.Commits.Others) == 0)
		if t.Note != "" {
			receipt.Warnings = append(receipt.Warnings, t.Note)
		}
	}
}

// onlyGit reports whether nothing but files of git is withheld: with no commit in them
// there is nothing to keep.
func onlyGit(withheld []api.SyncGroup) bool {
	return !slices.ContainsFunc(withheld, func(g api.SyncGroup) bool { return g.Name != ".git" })
}

// removeOverlaid removes the sandbox and the home of a run on a directory. The overlay
// stays, unless nothing was changed in it.
func (p *Sandbox) removeOverlaid(ctx context.Context, planned *plan.Plan) error {
	e := p.runs.executor
	if err := e.Manager.ForceRemove(ctx, planned.Spec.Name); err != nil {
		return err
	}
	if p.unchanged {
		record, err := e.RunOverlay(p.order.Run)
		if err == nil {
			err = e.RemoveRunOverlay(ctx, record)
		}
		if err != nil && !errors.Is(err, overlay.ErrNone) {
			return err
		}
	}
	return errors.Join(e.RemoveHome(planned), os.RemoveAll(e.dir(p.order.Run)))
}
