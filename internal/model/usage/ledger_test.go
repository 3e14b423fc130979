package usage_test

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/model/usage"
)

func TestReserveSettleCharges(t *testing.T) {
	dir := state(t)
	l := open(t, dir)
	r, err := l.Reserve(t.Context(), call("a", 1000, 500))
	if err != nil {
		t.Fatal(err)
	}
	if r.OutputRoom() >= 0 {
		t.Errorf("room %d without a budget", r.OutputRoom())
	}
	outcome := usage.Outcome{Tokens: usage.Tokens{Input: 100, CachedInput: 1000, Output: 20, Reasoning: 5}, Status: 200}
	want := usage.Charge{MicroUSD: 100 + 100 + 200, Tokens: outcome.Tokens, Calls: 1}
	for range 2 { // the second is the first one's answer
		if got, err := r.Settle(outcome); err != nil || got != want {
			t.Errorf("charge %+v, %v; want %+v", got, err, want)
		}
	}
	r.Release()
	day := usage.Day("alice", time.Now())
	for scope, key := range map[usage.Scope]string{"run": "r1", "session": "s1", "agent": "main", "account": "alice", "day": day} {
		if got := spent(t, l, scope, key); got != want {
			t.Errorf("%s: %+v, want %+v", scope, got, want)
		}
	}
	if got := spent(t, open(t, dir), usage.ScopeRun, "r1"); got != want {
		t.Errorf("another ledger sees %+v", got)
	}
}

func TestACallIdIsUsedOnce(t *testing.T) {
	l := open(t, state(t))
	r, err := l.Reserve(t.Context(), call("a", 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reserve(t.Context(), call("a", 1, 1)); !errors.Is(err, usage.ErrDuplicate) {
		t.Errorf("while open: %v", err)
	}
	r.Release()
	if _, err := l.Reserve(t.Context(), call("a", 1, 1)); !errors.Is(err, usage.ErrDuplicate) {
		t.Errorf("after its end: %v", err)
	}
}

func TestBudgets(t *testing.T) {
	for name, c := range map[string]struct {
		limit         usage.Limit
		input, output int64
		room          int64 // below zero: refused
	}{
		"fits":                    {usage.Limit{Scope: "run", MicroUSD: 10_000}, 100, 100, 100},
		"cut to what is left":     {usage.Limit{Scope: "run", MicroUSD: 2_100}, 100, 1000, 200},
		"input alone is too much": {usage.Limit{Scope: "run", MicroUSD: 99}, 100, 1000, -1},
		"no room for an answer":   {usage.Limit{Scope: "run", MicroUSD: 110}, 100, 1000, -1},
		"tokens fit":              {usage.Limit{Scope: "account", Tokens: 200}, 100, 100, 100},
		"tokens cut":              {usage.Limit{Scope: "account", Tokens: 200}, 100, 1000, 100},
		"tokens gone":             {usage.Limit{Scope: "day", Tokens: 100}, 100, 1000, -1},
		"an input without answer": {usage.Limit{Scope: "session", Tokens: 100}, 100, 0, 0},
		"output is not known":     {usage.Limit{Scope: "agent", Tokens: 1 << 20}, 100, -1, 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := open(t, state(t)).Reserve(t.Context(), call("a", c.input, c.output, c.limit))
			budget, refused := errors.AsType[*usage.BudgetError](err)
			switch {
			case err != nil && !refused:
				t.Fatal(err)
			case refused != (c.room < 0):
				t.Errorf("refused: %v", err)
			case refused && budget.Scope != c.limit.Scope:
				t.Errorf("refused by the %s's budget", budget.Scope)
			case !refused && r.OutputRoom() != c.room:
				t.Errorf("room %d, want %d", r.OutputRoom(), c.room)
			}
		})
	}
}

func TestTheNarrowestBudgetDecides(t *testing.T) {
	l := open(t, state(t))
	r, err := l.Reserve(t.Context(), call("a", 10, 10_000, usage.Limit{Scope: "account", Tokens: 5000}, usage.Limit{Scope: "run", Tokens: 510}, usage.Limit{Scope: "day"}))
	if err != nil || r.OutputRoom() != 500 {
		t.Fatalf("room %d, %v; want 500", r.OutputRoom(), err)
	}
}

// Two hundred calls at once, with room for ten: ten.
func TestBudgetRace(t *testing.T) {
	l := open(t, state(t))
	var granted atomic.Int64
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			r, err := l.Reserve(t.Context(), call(fmt.Sprint(i), 100, 64, usage.Limit{Scope: "run", Tokens: 1640 + 99}))
			if _, refused := errors.AsType[*usage.BudgetError](err); refused {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			granted.Add(1)
			if _, err := r.Settle(usage.Outcome{Tokens: usage.Tokens{Input: 100, Output: 64}, Status: 200}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := spent(t, l, "run", "r1"); granted.Load() != 10 || got.Tokens.Total() != 1640 {
		t.Errorf("%d granted, %d tokens spent; want 10 and 1640", granted.Load(), got.Tokens.Total())
	}
}

func TestAnUnpricedModelIsNeverFree(t *testing.T) {
	l := open(t, state(t))
	money := usage.Limit{Scope: "run", MicroUSD: 1_000_000}
	unknown := call("a", 10, 10, money)
	unknown.Model = "unknown"
	if _, err := l.Reserve(t.Context(), unknown); !errors.As(err, new(*usage.UnpricedError)) {
		t.Errorf("with a budget of money: %v, want UnpricedError", err)
	}
	unknown.Limits = nil
	r, err := l.Reserve(t.Context(), unknown)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Settle(usage.Outcome{Tokens: usage.Tokens{Input: 10, Output: 1}, Status: 200})
	if err != nil || got.Unpriced != 1 || got.Tokens.Total() != 11 {
		t.Errorf("%+v, %v; want one unpriced call with its tokens", got, err)
	}
}

func TestAnUpstreamIsNotBelievedBeyondReason(t *testing.T) {
	l := open(t, state(t))
	huge, tiny := int64(math.MaxInt64), int64(7)
	for name, c := range map[string]struct {
		outcome usage.Outcome
		most    int64
		guessed bool
	}{
		"negative tokens": {usage.Outcome{Tokens: usage.Tokens{Input: -5, Output: 10}}, 1000 + 1000*10, true},
		"endless tokens":  {usage.Outcome{Tokens: usage.Tokens{Input: math.MaxInt64, Output: math.MaxInt64}}, 11 * 100_000, true},
		"endless money":   {usage.Outcome{Tokens: usage.Tokens{Input: 10}, UpstreamCost: &huge}, 10, false},
		"told money":      {usage.Outcome{Tokens: usage.Tokens{Input: 10}, UpstreamCost: &tiny}, 7, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := l.Reserve(t.Context(), call(name, 1000, 1000))
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.Settle(c.outcome)
			if err != nil || got.MicroUSD != c.most || (got.Estimated == 1) != c.guessed {
				t.Errorf("%+v, %v; want %d", got, err, c.most)
			}
		})
	}
}

func TestNamesAreBounded(t *testing.T) {
	l := open(t, state(t))
	long := make([]byte, 600)
	for name, change := range map[string]func(*usage.Call){
		"no id":      func(c *usage.Call) { c.ID = "" },
		"long id":    func(c *usage.Call) { c.ID = string(long) },
		"long model": func(c *usage.Call) { c.Model = string(long) },
		"long run":   func(c *usage.Call) { c.Subject.Run = string(long) },
		"scope":      func(c *usage.Call) { c.Limits = []usage.Limit{{Scope: "universe", Tokens: 1}} },
	} {
		c := call("a", 1, 1)
		change(c)
		if _, err := l.Reserve(t.Context(), c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func BenchmarkReserveSettle(b *testing.B) {
	l := openWith(b, state(b), func(o *usage.Options) { o.ProjectEvery = 0 })
	limit := usage.Limit{Scope: usage.ScopeAccount, Tokens: math.MaxInt64 / 2}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r, err := l.Reserve(b.Context(), call(fmt.Sprint(i), 100, 100, limit))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Settle(usage.Outcome{Tokens: usage.Tokens{Input: 100, Output: 10}, Status: 200}); err != nil {
			b.Fatal(err)
		}
	}
}

// Input that is to stay in a cache for an hour is reserved and charged at the
// price of that.
func TestALongCacheIsReservedAtItsPrice(t *testing.T) {
	l := open(t, state(t))
	limit := usage.Limit{Scope: usage.ScopeRun, MicroUSD: 1900}
	long := call("c-1", 1000, 0, limit)
	long.LongCache = true
	if _, err := l.Reserve(t.Context(), long); err == nil {
		t.Fatal("a call that can cost 2000 fits into a budget of 1900")
	}
	long.Limits[0].MicroUSD = 2000
	r, err := l.Reserve(t.Context(), long)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := r.Settle(usage.Outcome{Tokens: usage.Tokens{CacheWrite: 1000}, LongCache: true}); err != nil || c.MicroUSD != 2000 {
		t.Errorf("%+v %v", c, err)
	}
}

// A call with much input is reserved and charged at the price of such calls.
func TestALongCallIsReservedAtItsPrice(t *testing.T) {
	l := openWith(t, state(t), func(o *usage.Options) {
		o.Prices = usage.NewPrices(map[string]usage.Price{"m": {Input: 1_000_000, Output: 1_000_000, Long: usage.Long{Over: 1000, Input: 2_000_000, Output: 3_000_000}}})
	})
	limit := usage.Limit{Scope: usage.ScopeRun, MicroUSD: 2100}
	if _, err := l.Reserve(t.Context(), call("c-1", 1001, 100, limit)); err == nil {
		t.Fatal("a call that can cost 2302, and needs 2194, fits into a budget of 2100")
	}
	limit.MicroUSD = 3000
	r, err := l.Reserve(t.Context(), call("c-2", 1001, 100, limit))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := r.Settle(usage.Outcome{Tokens: usage.Tokens{Input: 1001, Output: 100}}); err != nil || c.MicroUSD != 2302 {
		t.Errorf("%+v %v", c, err)
	}
	r, err = l.Reserve(t.Context(), call("c-3", 600, 10, usage.Limit{Scope: usage.ScopeRun, MicroUSD: 3000}))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := r.Settle(usage.Outcome{Tokens: usage.Tokens{Input: 600, Output: 10}}); err != nil || c.MicroUSD != 610 {
		t.Errorf("%+v %v", c, err)
	}
}
