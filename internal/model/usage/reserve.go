package usage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

const (
	// unknownOutput is the reservation of a call without a limit of output tokens.
	unknownOutput = 64 << 10
	// leastOutput is how many tokens of answer must be affordable for a call
	// to be worth making.
	leastOutput = 64
)

// Reservation is a call under way.
type Reservation struct {
	ledger     *Ledger
	held       record
	outputRoom int64
	limit      Limit // the budget that outputRoom is of

	mu     sync.Mutex
	ended  bool
	charge Charge
}

// Reserve holds the worst that a call can cost, or what is left of its budgets
// if that is still worth an answer; otherwise it returns a *BudgetError.
// MaxOutputTokens below zero means that it is not known.
func (l *Ledger) Reserve(ctx context.Context, c *Call) (*Reservation, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.journal.unlock()
	if l.broken != nil {
		return nil, l.broken
	}
	if l.lag() > maxLag {
		return nil, ErrBacklog
	}
	if l.isKnown(c.ID) {
		return nil, fmt.Errorf("%w: %s", ErrDuplicate, c.ID)
	}
	r, err := l.fit(ctx, c)
	if errors.As(err, new(*BudgetError)) && time.Since(l.reaped) > reapEvery {
		if reapErr := l.reap(); reapErr != nil {
			return nil, reapErr
		}
		r, err = l.fit(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	if err := l.write(&r.held); err != nil {
		return nil, err
	}
	return r, nil
}

func (l *Ledger) isKnown(id string) bool {
	_, ended := l.state.ended[id]
	return ended || l.state.open[id] != nil
}

func (c *Call) check() error {
	if c.ID == "" || len(c.ID) > MaxID {
		return fmt.Errorf("a call's id has 1 to %d bytes, this one has %d", MaxID, len(c.ID))
	}
	for _, text := range []string{c.Subject.Run, c.Subject.Session, c.Subject.Agent, c.Subject.Account, c.Model, c.Dialect} {
		if len(text) > maxKey {
			return fmt.Errorf("a name of %d bytes is too long for the ledger: at most %d", len(text), maxKey)
		}
	}
	return nil
}

// fit decides how much of the call the budgets allow.
func (l *Ledger) fit(ctx context.Context, c *Call) (*Reservation, error) {
	now := l.options.Now()
	r := &Reservation{ledger: l, outputRoom: -1, held: record{
		Kind: kindReserve, ID: c.ID, Owner: l.owner, Subject: c.Subject, Day: Day(c.Subject.Account, now),
		Dialect: c.Dialect, ModelAsked: c.Model, AtMs: now.UnixMilli(),
	}}
	price, priced := l.options.Prices.Of(c.Model)
	if !priced {
		r.held.Flags |= flagUnpriced
	}
	price = price.at(bounded(c.InputTokens)).longCache(c.LongCache)
	input, output := bounded(c.InputTokens), bounded(c.MaxOutputTokens)
	if c.MaxOutputTokens < 0 {
		output = unknownOutput
	}
	need := need{price, input, min(output, leastOutput)}
	for _, limit := range c.Limits {
		if limit.MicroUSD > 0 && !priced && !l.options.CountUnpriced {
			return nil, &UnpricedError{c.Model}
		}
		room, err := l.outputRoom(ctx, &r.held, limit, need)
		if err != nil {
			return nil, err
		}
		if limit.MicroUSD > 0 || limit.Tokens > 0 {
			if room < output || r.outputRoom < 0 {
				r.limit = limit
			}
			output = min(output, room)
			r.outputRoom = output
		}
	}
	r.held.Tokens = Tokens{Input: input, Output: output}
	r.held.MicroUSD = price.worst(input, output)
	return r, nil
}

// need is what a call must have of a budget: its input, and the least answer.
type need struct {
	price        Price
	input, least int64
}

// outputRoom is how many tokens of answer one budget allows after the input.
func (l *Ledger) outputRoom(ctx context.Context, held *record, limit Limit, n need) (int64, error) {
	key, err := held.keyOf(limit.Scope)
	if err != nil {
		return 0, err
	}
	t, err := l.total(ctx, key)
	if err != nil {
		return 0, err
	}
	room := int64(math.MaxInt64)
	if limit.Tokens > 0 {
		spent := t.spent.Tokens.Total()
		left := limit.Tokens - spent - t.reserved.tokens - n.input
		if left < n.least || left < 0 {
			return 0, &BudgetError{limit.Scope, UnitTokens, limit.Tokens, spent, t.reserved.tokens, n.input + n.least}
		}
		room = left
	}
	if limit.MicroUSD > 0 {
		left := limit.MicroUSD - t.spent.MicroUSD - t.reserved.microUSD
		affordable := n.price.affordable(left, n.input)
		if left < n.price.worst(n.input, 0) || left <= 0 || affordable < n.least {
			return 0, &BudgetError{limit.Scope, UnitMicroUSD, limit.MicroUSD, t.spent.MicroUSD, t.reserved.microUSD, n.price.worst(n.input, n.least)}
		}
		room = min(room, affordable)
	}
	return room, nil
}

func (r *record) keyOf(scope Scope) (scopeKey, error) {
	for _, k := range r.keys() {
		if k.scope == scope {
			return k, nil
		}
	}
	return scopeKey{}, fmt.Errorf("a budget has the unknown scope %q", scope)
}

// ID returns the call's id.
func (r *Reservation) ID() string { return r.held.ID }

// OutputRoom returns how many tokens of answer the budget allows; below zero there
// is no limit.
func (r *Reservation) OutputRoom() int64 { return r.outputRoom }

// Limit returns the budget that OutputRoom is of.
func (r *Reservation) Limit() Limit { return r.limit }

// Release ends the reservation of a call of which nothing reached the upstream.
func (r *Reservation) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	end := r.held
	end.Kind = kindRelease
	if _, err := r.ledger.end(&end); err != nil {
		r.ledger.options.Logger.Warn("a reservation could not be released; it counts until this process ends", "error", err)
		return
	}
	r.ended = true
}

// Settle charges what the call did cost. It takes effect once: a second call
// returns the first one's charge. When it fails, nothing was charged, the
// reservation stays and Settle may be tried again.
func (r *Reservation) Settle(o Outcome) (Charge, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return r.charge, nil
	}
	end := r.ledger.settlement(&r.held, o)
	charge, err := r.ledger.end(end)
	if err != nil {
		return Charge{}, err
	}
	r.ended, r.charge = true, charge
	return charge, nil
}

// end writes the end of a reservation of this process. One that another process
// ended, because this one seemed dead, was charged in full.
func (l *Ledger) end(r *record) (Charge, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.lock(context.Background()); err != nil { // what was spent is spent, though the caller has gone
		return Charge{}, err
	}
	defer l.journal.unlock()
	if l.state.open[r.ID] == nil {
		return Charge{}, fmt.Errorf("%w: %s", ErrEnded, r.ID)
	}
	return r.charge(), l.write(r)
}
