package usage

import (
	"context"
	"database/sql"
)

// projection moves journal records into SQLite's tables, within a transaction.
type projection struct {
	ctx    context.Context
	tx     *sql.Tx
	insert *sql.Stmt
	sums   map[scopeKey]*Charge
	err    error
}

// take stores one record. Rows are made once: a call that is stored already
// adds nothing to the sums.
func (p *projection) take(r *record) {
	if p.err != nil {
		return
	}
	switch r.Kind {
	case kindSettle:
		p.takeNew(r)
	case kindCorrect:
		_, p.err = p.tx.ExecContext(p.ctx, "UPDATE usage_calls SET billed = ?, priced = 1 WHERE at_ms = ? AND id = ?", r.MicroUSD, r.AtMs, r.ID)
		p.sum(r, r.correction())
	}
}

// takeNew stores a settled call if it is not stored already, and reports whether
// it was new.
func (p *projection) takeNew(r *record) (added bool) {
	if p.err != nil {
		return false
	}
	if added, p.err = p.insertCall(r); added {
		p.sum(r, r.charge())
	}
	return added
}

func (p *projection) sum(r *record, c Charge) {
	for _, k := range r.keys() {
		if p.sums[k] == nil {
			p.sums[k] = &Charge{}
		}
		p.sums[k].add(c)
	}
}

const insertCall = `INSERT INTO usage_calls (id, at_ms, run, session, agent, account, day, dialect, model_asked, model, status,
	input, cached_input, cache_write, output, reasoning, cost, priced, estimated, crashed)
	VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`

func (p *projection) insertCall(r *record) (added bool, err error) {
	if p.insert == nil {
		if p.insert, err = p.tx.PrepareContext(p.ctx, insertCall); err != nil {
			return false, err
		}
	}
	s, t := r.Subject, r.Tokens
	result, err := p.insert.ExecContext(p.ctx, r.ID, r.AtMs, s.Run, s.Session, s.Agent, s.Account, r.Day, r.Dialect, r.ModelAsked, r.Model, r.Status,
		t.Input, t.CachedInput, t.CacheWrite, t.Output, t.Reasoning, r.MicroUSD,
		r.Flags&flagUnpriced == 0, r.Flags&flagEstimated != 0, r.Flags&flagCrashed != 0)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

const addTotal = `INSERT INTO usage_totals (scope, key, micro_usd, calls, unpriced, estimated, input, cached_input, cache_write, output, reasoning)
	VALUES (?,?,?,?,?,?,?,?,?,?,?)
	ON CONFLICT (scope, key) DO UPDATE SET micro_usd = micro_usd + excluded.micro_usd, calls = calls + excluded.calls,
	unpriced = unpriced + excluded.unpriced, estimated = estimated + excluded.estimated, input = input + excluded.input,
	cached_input = cached_input + excluded.cached_input, cache_write = cache_write + excluded.cache_write,
	output = output + excluded.output, reasoning = reasoning + excluded.reasoning`

// finish stores the sums and the position that they were read up to.
func (p *projection) finish(at journalPos) error {
	for k, c := range p.sums {
		t := c.Tokens
		if _, err := p.tx.ExecContext(p.ctx, addTotal, string(k.scope), k.key, c.MicroUSD, c.Calls, c.Unpriced, c.Estimated,
			t.Input, t.CachedInput, t.CacheWrite, t.Output, t.Reasoning); err != nil {
			return err
		}
	}
	_, err := p.tx.ExecContext(p.ctx, `INSERT INTO usage_journal VALUES (1, ?, ?)
		ON CONFLICT (one) DO UPDATE SET generation = excluded.generation, position = excluded.position`, at.generation, at.position)
	return err
}
