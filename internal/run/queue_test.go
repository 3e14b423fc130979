package run

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// An account that asks often does not keep another waiting.
func TestQueueIsFair(t *testing.T) {
	q := newQueue(1)
	if err := q.acquire(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []string
	var all sync.WaitGroup
	for i, account := range []string{"greedy", "greedy", "greedy", "modest"} {
		turn, now := q.tryAcquire(account)
		if now {
			t.Fatalf("%d got in", i)
		}
		all.Go(func() {
			<-turn
			mu.Lock()
			order = append(order, account)
			mu.Unlock()
			q.release()
		})
	}
	q.release()
	all.Wait()
	if order[0] != "greedy" || order[1] != "modest" {
		t.Errorf("order %v", order)
	}
	if q.free != 1 || len(q.order) != 0 || len(q.waiting) != 0 {
		t.Errorf("left: %+v", q)
	}
}

func TestQueueWithdraws(t *testing.T) {
	q := newQueue(1)
	if err := q.acquire(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.acquire(ctx, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	q.release()
	if q.free != 1 || len(q.order) != 0 || len(q.waiting) != 0 {
		t.Errorf("left: %+v", q)
	}
}
