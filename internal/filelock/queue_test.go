package filelock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
)

// Many wait for a name; they get it in the order in which they came, and one
// that goes away keeps nobody waiting.
func TestInTurn(t *testing.T) {
	b := openBook(t)
	first, err := b.HoldInTurn(t.Context(), "a", func(int) { t.Error("nobody is ahead") })
	if err != nil {
		t.Fatal(err)
	}
	const n = 8
	const leaver = 3
	var mu sync.Mutex
	var order []int
	var all sync.WaitGroup
	impatient, leave := context.WithCancelCause(t.Context())
	gone := make(chan struct{})
	for i := range n {
		ctx := t.Context()
		if i == leaver {
			ctx = impatient
		}
		waits := make(chan int, 1)
		all.Go(func() {
			l, err := b.HoldInTurn(ctx, "a", func(ahead int) { waits <- ahead })
			if i == leaver {
				if !errors.Is(err, filelock.ErrHeld) {
					t.Errorf("the one that left: %v", err)
				}
				close(gone)
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			time.Sleep(5 * time.Millisecond) // so that others would have a chance
			l.Release()
		})
		select {
		case ahead := <-waits:
			if ahead != i+1 {
				t.Errorf("%d are ahead of number %d", ahead, i)
			}
		case <-time.After(time.Minute):
			t.Fatal("it does not wait")
		}
	}
	leave(errors.New("no patience"))
	<-gone
	first.Release()
	all.Wait()
	if want := []int{0, 1, 2, 4, 5, 6, 7}; !slices.Equal(order, want) {
		t.Errorf("they came in the order %v, want %v", order, want)
	}
	again, err := b.HoldInTurn(t.Context(), "a", func(int) { t.Error("somebody is still there") })
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
}
