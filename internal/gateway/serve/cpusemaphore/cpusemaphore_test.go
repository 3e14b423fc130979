package cpusemaphore

import (
	"context"
	"errors"
	"testing"
	"time"
)

// No more are let in than there are places, until one leaves.
func TestSemaphoreCounts(t *testing.T) {
	semaphore := make(Semaphore, 2)
	first, err := semaphore.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if len(semaphore) != 1 {
			t.Fatalf("%d places are taken", len(semaphore))
		}
		leave, err := semaphore.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leave()
		leave() // twice is once
	}
	first()
	if len(semaphore) != 0 {
		t.Errorf("%d places are taken when all left", len(semaphore))
	}
}

// Who gives up waiting takes no place.
func TestSemaphoreGivesUp(t *testing.T) {
	semaphore := make(Semaphore) // no place at all
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := semaphore.Enter(ctx); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

// Who takes long does not compute, and is not waited for.
func TestSemaphoreDoesNotWaitForTheSlow(t *testing.T) {
	semaphore := make(Semaphore, 1)
	slow, err := semaphore.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	next, err := semaphore.Enter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	slow() // its place was given on, and stays with the next
	if len(semaphore) != 1 {
		t.Errorf("%d places are taken", len(semaphore))
	}
	next()
}
