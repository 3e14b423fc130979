package serve

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/deliver"
)

// restRelay is the relay for the gateway's callers.
type restRelay struct{ parts *Parts }

// List returns what became of the commits of all runs.
func (r restRelay) List(context.Context) ([]api.RelayRecord, error) {
	relays, err := r.parts.Commits.AuditedRelays()
	if err != nil {
		return nil, err
	}
	records, err := relays.List()
	return recordsOf(records), err
}

// Get returns that of one run.
func (r restRelay) Get(_ context.Context, run string) (*api.RelayRecord, error) {
	_, record, err := r.load(run)
	if err != nil {
		return nil, err
	}
	return recordOf(record), nil
}

func (r restRelay) load(run string) (*deliver.Relays, *relay.Record, error) {
	relays, err := r.parts.Commits.AuditedRelays()
	if err != nil {
		return nil, nil, err
	}
	record, err := relays.Load(run)
	return relays, record, err
}

// Patch returns what the commits of a run change.
func (r restRelay) Patch(_ context.Context, run string, most int) (*api.RelayPatch, error) {
	relays, record, err := r.load(run)
	if err != nil {
		return nil, err
	}
	if record.Patch == nil {
		return &api.RelayPatch{Why: "commits that are blocked, or that were not taken, have none"}, nil
	}
	if record.Patch.Why != "" {
		return &api.RelayPatch{Why: record.Patch.Why}, nil
	}
	text, err := relays.LoadPatch(record)
	if err != nil {
		return nil, err
	}
	return patchOf(text, record.Patch.Cut, most), nil
}

// patchOf returns the whole lines of a patch that are within a bound.
func patchOf(text []byte, cut bool, most int) *api.RelayPatch {
	if len(text) > most {
		text, cut = text[:bytes.LastIndexByte(text[:most], '\n')+1], true
	}
	return &api.RelayPatch{Patch: strings.ToValidUTF8(string(text), "\uFFFD"), Cut: cut}
}

// Push sends commits that were kept, as `atoll relay push` does.
func (r restRelay) Push(ctx context.Context, run string, approve bool, by string) (*api.RelayRecord, error) {
	relays, record, err := r.load(run)
	if err == nil && approve {
		err = r.parts.Commits.ApproveHold(ctx, relays, record, by)
	}
	if err != nil {
		return nil, err
	}
	switch record.Step {
	case relay.Blocked:
		return nil, errors.New("these commits may not be pushed")
	case relay.Waiting:
		return nil, errhint.With(errors.New("these commits need a person's approval"), "approve: true")
	}
	if err := r.parts.Commits.ReleaseHold(ctx, record, by); err != nil {
		return nil, err
	}
	if err := r.parts.Commits.Send(ctx, record); err != nil {
		return nil, err
	}
	return recordOf(record), nil
}

// Retry goes on with everything that was interrupted.
func (r restRelay) Retry(ctx context.Context) ([]api.RelayRecord, error) {
	found, err := r.parts.Commits.Resume(ctx)
	return recordsOf(found), err
}

func recordsOf(records []*relay.Record) []api.RelayRecord {
	list := make([]api.RelayRecord, 0, len(records))
	for _, r := range records {
		list = append(list, *recordOf(r))
	}
	return list
}

func recordOf(r *relay.Record) *api.RelayRecord {
	a := &api.RelayRecord{
		Run: r.Run, Account: r.Account, Agent: r.Agent, Branch: r.Work.Key.Branch(), State: string(r.Step), Note: deliver.Note(r), Held: r.Held,
		Pull: r.PullURL, Trouble: r.Trouble, Approved: r.Approved, Denied: r.Denied, Changed: r.Changed,
	}
	if r.Report != nil {
		a.Commits, a.Files = r.Report.Commits, r.Report.Files
		for _, f := range r.Report.Findings {
			a.Findings = append(a.Findings, api.RelayFinding{Rule: f.Rule, Verdict: string(f.Verdict), Commit: f.Commit, Path: f.Path, Detail: f.Detail})
		}
	}
	return a
}
