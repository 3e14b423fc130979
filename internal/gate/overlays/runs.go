package overlays

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Runs lists the runs on the directory of a subject in whose overlays something
// waits, or that are under way, the newest first: as it was when each was looked at
// last.
func (s *Service) Runs(_ context.Context, of *api.SyncSubject) (*api.SyncRuns, error) {
	d, err := s.Directory(of.Directory)
	if err != nil {
		return nil, err
	}
	records, err := s.RunsOn(d.Path)
	answer := &api.SyncRuns{Runs: []api.SyncRun{}}
	for i := range records {
		row := api.SyncRun{Run: records[i].Run, UnderWay: records[i].Waiting == nil}
		if w := records[i].Waiting; w != nil {
			row.Counts, row.Commits = api.SyncCounts{Pass: w.Pass, Approval: w.Approval, Blocked: w.Blocked, Conflict: w.Conflict}, w.Commits
		}
		answer.Runs = append(answer.Runs, row)
	}
	return answer, err
}

// noteRun records what waits in the overlays of a run, unless there may be commits
// that could not be looked at.
func (s *subject) noteRun(all *api.SyncTrees) error {
	if s.run == nil {
		return nil
	}
	waiting := &provide.RunWaiting{}
	for i := range all.Trees {
		t := &all.Trees[i]
		waiting.Pass, waiting.Approval = waiting.Pass+t.Counts.Pass, waiting.Approval+t.Counts.Approval
		waiting.Blocked, waiting.Conflict = waiting.Blocked+t.Counts.Blocked, waiting.Conflict+t.Counts.Conflict
		if t.Commits != nil {
			waiting.Commits += len(t.Commits.Commits) + len(t.Commits.Others)
		}
	}
	if s.unknown && *waiting == (provide.RunWaiting{}) {
		return nil
	}
	return s.run.Note(waiting)
}

// decided notes, after a decision about the changes of a run, what still waits. The
// decision holds also if that fails.
func decided[A any](ctx context.Context, s *Service, of *api.SyncSubject, answer *A, err error) (*A, error) {
	if err != nil || of.Run == "" {
		return answer, err
	}
	_, after := s.Trees(ctx, &api.SyncSubject{Run: of.Run})
	if errors.Is(after, ErrNone) { // all of it was discarded
		var record *provide.RunOverlay
		if record, after = s.RunOverlay(of.Run); after == nil {
			after = record.Note(&provide.RunWaiting{})
		}
	}
	if after != nil {
		s.Logger.WarnContext(ctx, "what waits of a run is not known", "run", of.Run, "error", after)
	}
	return answer, nil
}

// enter enters the sandbox, which is started if it does not run. That of a run was
// removed when the run ended: it is removed again by leave.
func (s *subject) enter(ctx context.Context) (box *provide.ReadySandbox, leave func(), err error) {
	if box, err = s.running(ctx); err == nil {
		return box, box.Release, nil
	}
	if !errors.Is(err, sandbox.ErrNotRunning) {
		return nil, nil, err
	}
	if box, err = s.start(ctx); err != nil {
		return nil, nil, err
	}
	return box, func() {
		box.Release()
		if s.run == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTime)
		defer cancel()
		if err := s.Manager.Remove(ctx, s.plan.Spec.Name, nil); err != nil && !errors.Is(err, sandbox.ErrBusy) {
			s.Logger.WarnContext(ctx, "the sandbox of a run was not removed", "sandbox", s.plan.Spec.Name, "error", err)
		}
	}, nil
}

// removalTime bounds the removal of a sandbox that was started for a look.
const removalTime = time.Minute
