package usage_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/model/usage"
)

func settle(t testing.TB, l *usage.Ledger, c *usage.Call, tokens usage.Tokens) {
	t.Helper()
	r, err := l.Reserve(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Settle(usage.Outcome{Tokens: tokens, Status: 200}); err != nil {
		t.Fatal(err)
	}
}

func TestCorrectionsReachSumsOnce(t *testing.T) {
	dir := state(t)
	l, other := open(t, dir), open(t, dir)
	settle(t, l, call("a", 10, 10), usage.Tokens{Input: 10, Output: 1}) // 20
	unpriced := call("b", 10, 10)
	unpriced.Model = "unknown"
	settle(t, l, unpriced, usage.Tokens{Input: 10})
	before := spent(t, other, "account", "alice")
	if before.MicroUSD != 20 || before.Unpriced != 1 {
		t.Fatalf("%+v", before)
	}
	at := map[string]time.Time{}
	stored, err := l.Calls(t.Context(), usage.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range stored {
		at[c.ID] = c.At
	}
	for i, want := range []int{2, 0} { // the second time nothing changes
		got, err := l.Correct(t.Context(), []usage.Billed{{"a", at["a"], 25}, {"b", at["b"], 7}, {"nobody", at["a"], 9}})
		if err != nil || got != want {
			t.Fatalf("time %d: %d changed, %v; want %d", i, got, err, want)
		}
	}
	for _, ledger := range []*usage.Ledger{l, other, open(t, dir)} {
		if got := spent(t, ledger, "account", "alice"); got.MicroUSD != 32 || got.Unpriced != 0 || got.Calls != 2 {
			t.Errorf("%+v", got)
		}
	}
	if n, err := other.Correct(t.Context(), []usage.Billed{{"a", at["a"], 20}}); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	if got := spent(t, l, "run", "r1"); got.MicroUSD != 27 {
		t.Errorf("%+v", got)
	}
	runs, err := l.Runs(t.Context(), usage.Filter{})
	if err != nil || len(runs) != 1 || runs[0].MicroUSD != 27 || runs[0].Provisional != 0 || runs[0].Calls != 2 {
		t.Errorf("%+v, %v", runs, err)
	}
}

// Journals are replaced while several ledgers write, and one sleeps through it.
func TestRotationLosesNothing(t *testing.T) {
	dir := state(t)
	sleeper := open(t, dir)
	settle(t, sleeper, call("first", 1, 1), usage.Tokens{Input: 1})
	held, err := sleeper.Reserve(t.Context(), call("held", 5, 0))
	if err != nil {
		t.Fatal(err)
	}
	const writers, calls = 3, 150
	var wg sync.WaitGroup
	for w := range writers {
		l := open(t, dir)
		usage.RotateAt(l, 2<<10)
		wg.Go(func() {
			for i := range calls {
				settle(t, l, call(fmt.Sprintf("%d-%d", w, i), 10, 2), usage.Tokens{Input: 10})
				if i%10 == 0 {
					if err := l.Flush(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	want := int64(1 + writers*calls*10)
	fresh := open(t, dir)
	if usage.Generation(fresh) < 3 {
		t.Errorf("only %d generations", usage.Generation(fresh))
	}
	for name, l := range map[string]*usage.Ledger{"sleeper": sleeper, "fresh": fresh} {
		if got := spent(t, l, "run", "r1"); got.MicroUSD != want || got.Calls != writers*calls+1 {
			t.Errorf("%s: %d in %d calls, want %d in %d", name, got.MicroUSD, got.Calls, want, writers*calls+1)
		}
	}
	if _, err := held.Settle(usage.Outcome{Tokens: usage.Tokens{Input: 5}}); err != nil {
		t.Errorf("a reservation that was carried over: %v", err)
	}
	if got := spent(t, fresh, "run", "r1"); got.MicroUSD != want+5 {
		t.Errorf("%d, want %d", got.MicroUSD, want+5)
	}
	stored, err := fresh.Calls(t.Context(), usage.Filter{Run: "r1"})
	if err != nil || len(stored) != writers*calls+2 {
		t.Errorf("%d calls stored, %v", len(stored), err)
	}
}
