package usage

import (
	"fmt"
	"time"
)

// Subject identifies whom a call is for. Every part is an opaque key; an empty one
// takes part in no budget.
type Subject struct{ Run, Session, Agent, Account string }

// Scope is what a budget is counted over.
type Scope string

// The scopes. A day is one account's day, in UTC.
const (
	ScopeRun     Scope = "run"
	ScopeSession Scope = "session"
	ScopeAgent   Scope = "agent"
	ScopeAccount Scope = "account"
	ScopeDay     Scope = "day"
)

// Limit is one budget. Zero means no limit in that unit.
type Limit struct {
	Scope            Scope
	MicroUSD, Tokens int64
}

// Call is what is known before a call is made.
type Call struct {
	ID                           string // ours, unique: at most MaxID bytes
	Subject                      Subject
	Model, Dialect               string
	InputTokens, MaxOutputTokens int64   // bounded estimates: the worst that may come
	Limits                       []Limit // the budgets that hold for it, from grant and configuration
	LongCache                    bool    // input may be written to a cache that keeps it for an hour
}

// Tokens are what a call used. Input counts what was neither read from nor
// written to a cache, whatever the dialect's own sum is; Output includes
// Reasoning.
type Tokens struct{ Input, CachedInput, CacheWrite, Output, Reasoning int64 }

// Total is what counts against a budget of tokens.
func (t Tokens) Total() int64 { return t.Input + t.CachedInput + t.CacheWrite + t.Output }

// Outcome is what is known after a call.
type Outcome struct {
	Tokens       Tokens
	Model        string // the one that answered; "" is the one that was asked
	Status       int
	Estimated    bool   // Tokens were not reported by the upstream
	LongCache    bool   // as the call's
	UpstreamCost *int64 // millionths of a dollar, if the upstream reported it
}

// Charge is what a call, or many, cost.
type Charge struct {
	MicroUSD int64
	Tokens   Tokens
	Calls    int64
	// Unpriced counts calls of models without a price: their tokens are known,
	// their money is not.
	Unpriced int64
	// Estimated counts calls whose tokens the upstream did not report, or reported
	// implausibly.
	Estimated int64
}

func (c *Charge) add(d Charge) {
	c.MicroUSD += d.MicroUSD
	c.Calls += d.Calls
	c.Unpriced += d.Unpriced
	c.Estimated += d.Estimated
	c.Tokens.Input += d.Tokens.Input
	c.Tokens.CachedInput += d.Tokens.CachedInput
	c.Tokens.CacheWrite += d.Tokens.CacheWrite
	c.Tokens.Output += d.Tokens.Output
	c.Tokens.Reasoning += d.Tokens.Reasoning
}

// BudgetError is a call that does not fit into a budget.
type BudgetError struct {
	Scope                  Scope
	Unit                   Unit
	Limit, Spent, Reserved int64 // in Unit
	Need                   int64 // the least that the call can cost, in Unit
}

// Unit is what a budget is measured in.
type Unit string

// The units.
const (
	UnitMicroUSD Unit = "microUSD"
	UnitTokens   Unit = "tokens"
)

func (e *BudgetError) Error() string {
	why := "is used up"
	if e.Spent+e.Reserved < e.Limit {
		why = "does not cover this call, which needs at least " + e.Unit.amount(e.Need)
	}
	return fmt.Sprintf("%s %s: %s spent, %s reserved by calls under way",
		Limit{Scope: e.Scope}.describe(e.Unit.amount(e.Limit)), why, e.Unit.amount(e.Spent), e.Unit.amount(e.Reserved))
}

// amount returns a number as text.
func (u Unit) amount(n int64) string {
	if u == UnitTokens {
		return fmt.Sprintf("%d tokens", n)
	}
	return Dollars(n)
}

// describe returns a budget as text.
func (l Limit) describe(amount string) string {
	return fmt.Sprintf("the %s's budget of %s", l.Scope, amount)
}

func (l Limit) String() string {
	switch {
	case l.MicroUSD > 0 && l.Tokens > 0:
		return l.describe(Dollars(l.MicroUSD) + " and " + UnitTokens.amount(l.Tokens))
	case l.Tokens > 0:
		return l.describe(UnitTokens.amount(l.Tokens))
	}
	return l.describe(Dollars(l.MicroUSD))
}

// Dollars returns millionths of a dollar as text.
func Dollars(microUSD int64) string {
	sign := ""
	if microUSD < 0 {
		sign, microUSD = "-", -microUSD
	}
	return fmt.Sprintf("%s$%d.%06d", sign, microUSD/1e6, microUSD%1e6)
}

// Day returns the key of ScopeDay at a time.
func Day(account string, at time.Time) string {
	return at.UTC().Format(time.DateOnly) + "/" + account
}
