package relay

import (
	"context"
	"errors"
	"os"
)

// TakeRequest says which commits to take.
type TakeRequest struct {
	Run     string
	Account string
	Agent   string
	Work    Work
	About   About
	Held    bool // keep them until a person sends them
}

// Take brings the commits of a run out of its sandbox and judges them, and commits
// before what the agent did not. Afterwards the sandbox is not needed any more,
// unless Record.Unsaved says why: what there was is in quarantines. Taking the
// same run again returns what is known of it.
func (r *Relay) Take(ctx context.Context, p *Project, s Site, o *TakeRequest) (*Record, error) {
	if known, err := r.Load(o.Run); !errors.Is(err, os.ErrNotExist) {
		return known, err
	}
	record := &Record{Run: o.Run, Account: o.Account, Agent: o.Agent, Project: p.id(), Work: o.Work, About: o.About, Held: o.Held}
	ref := o.Work.Key.Ref()
	early := r.startExtract(ctx, p, s, record, ref)
	head, err := r.takePieces(ctx, p, s, record)
	got := <-early
	if err != nil {
		return nil, errors.Join(err, r.discard(record))
	}
	if head != "" && head != got.head { // the branch has been moved meanwhile
		got = r.extract(ctx, p, s, record, ref)
	}
	return r.store(ctx, p, record, got)
}

// store saves what was extracted, and judges it.
func (r *Relay) store(ctx context.Context, p *Project, record *Record, got extraction) (*Record, error) {
	if got.err != nil {
		return nil, errors.Join(got.err, r.discard(record))
	}
	record.Taken, record.Step = got.taken, got.step
	if err := r.save(record); err != nil {
		return nil, err
	}
	return record, r.applyPolicy(ctx, p, record)
}
