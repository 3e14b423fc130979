package token_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/token"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/store"
)

func slots(t *testing.T, count int, open bool) (*token.Slots, *clock, map[string]secret.Value) {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c := &clock{now: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
	s := token.NewSlots(db, c.Now)
	texts, err := s.Provide(t.Context(), count, open)
	if err != nil {
		t.Fatal(err)
	}
	return s, c, texts
}

func termsOf(c *clock, account, run string) *grant.Terms {
	return &grant.Terms{Account: account, Agent: "main", Session: "agent:main:" + account + ":" + run, Run: run, Models: []string{"m"},
		Budget: grant.Budget{MicroUSD: 5}, Until: c.Now().Add(time.Minute)}
}

func lease(t *testing.T, s *token.Slots, terms *grant.Terms) string {
	t.Helper()
	name, err := s.Lease(t.Context(), terms)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestASlotSpeaksForItsRunAlone(t *testing.T) {
	s, c, texts := slots(t, 2, false)
	one, two := termsOf(c, "acme", "run-1"), termsOf(c, "other", "run-2")
	a, b := lease(t, s, one), lease(t, s, two)
	if a == b || lease(t, s, one) != a {
		t.Fatalf("slots %s and %s", a, b)
	}
	for name, want := range map[string]*grant.Terms{a: one, b: two} {
		got, err := s.Verify(t.Context(), texts[name].Reveal())
		if err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %v, %s", name, err, cmp.Diff(want, got))
		}
	}
	if _, err := s.Lease(t.Context(), termsOf(c, "late", "run-3")); !errors.Is(err, token.ErrNoSlot) {
		t.Errorf("%v", err)
	}
}

// A slot that was released bills no run, and is not leased again before it has
// rested: long, if its run was not seen to end.
func TestASlotThatWasGivenBack(t *testing.T) {
	for _, ended := range []bool{true, false} {
		s, c, texts := slots(t, 1, false)
		name := lease(t, s, termsOf(c, "acme", "run-1"))
		if err := s.Release(t.Context(), "run-1", ended); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Verify(t.Context(), texts[name].Reveal()); !errors.Is(err, token.ErrInvalid) {
			t.Errorf("left-over callers are taken: %v", err)
		}
		if _, err := s.Lease(t.Context(), termsOf(c, "next", "run-2")); !errors.Is(err, token.ErrNoSlot) {
			t.Errorf("leased without a rest: %v", err)
		}
		c.move(token.Cooldown)
		_, err := s.Lease(t.Context(), termsOf(c, "next", "run-2"))
		if ended != (err == nil) {
			t.Errorf("ended %v: %v", ended, err)
		}
		if err := s.EndCooldown(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease(t, s, termsOf(c, "next", "run-2"))
	}
}

func TestALeaseEndsByItself(t *testing.T) {
	s, c, texts := slots(t, 1, false)
	name := lease(t, s, termsOf(c, "acme", "run-1"))
	c.move(time.Minute)
	if _, err := s.Verify(t.Context(), texts[name].Reveal()); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if _, err := s.Lease(t.Context(), termsOf(c, "next", "run-2")); !errors.Is(err, token.ErrNoSlot) {
		t.Errorf("a run that may not have ended has left its slot to the next: %v", err)
	}
	c.move(token.LongCooldown)
	lease(t, s, termsOf(c, "next", "run-2"))
}

func TestSlotTokens(t *testing.T) {
	s, c, texts := slots(t, 1, true)
	if open, err := s.HasOpen(t.Context()); err != nil || !open {
		t.Errorf("%v, %v", open, err)
	}
	terms, err := s.Verify(t.Context(), texts[token.OpenProvider].Reveal())
	if err != nil || terms.Account+terms.Run+terms.Session != "" {
		t.Errorf("%+v, %v", terms, err)
	}
	name := lease(t, s, termsOf(c, "acme", "run-1"))
	wrong := texts[name].Reveal()
	wrong = wrong[:len(wrong)-1] + string(wrong[len(wrong)-1]^1)
	for _, text := range []string{"", "atoll_x", wrong} {
		if _, err := s.Verify(t.Context(), text); !errors.Is(err, token.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := s.Provide(t.Context(), 1, false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(t.Context(), texts[name].Reveal()); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("the token of an earlier slot: %v", err)
	}
	for _, count := range []int{0, token.MaxSlots + 1} {
		if _, err := s.Provide(t.Context(), count, false); err == nil {
			t.Errorf("%d slots", count)
		}
	}
}

func TestSlotsAreLeasedOnce(t *testing.T) {
	s, c, _ := slots(t, 4, false)
	var mu sync.Mutex
	var wait sync.WaitGroup
	got := map[string]int{}
	for i := range 8 {
		wait.Go(func() {
			name, err := s.Lease(t.Context(), termsOf(c, "acme", "run-"+string(rune('a'+i))))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				got[name]++
			} else if !errors.Is(err, token.ErrNoSlot) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if len(got) != 4 || got["cogni-1"] != 1 {
		t.Errorf("%v", got)
	}
}
