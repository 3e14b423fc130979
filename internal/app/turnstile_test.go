package app

import (
	"context"
	"errors"
	"testing"
	"time"
)

// No more are let in than there are places, until one leaves.
func TestTurnstileCounts(t *testing.T) {
	stile := make(turnstile, 2)
	first, err := stile.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if len(stile) != 1 {
			t.Fatalf("%d places are taken", len(stile))
		}
		leave, err := stile.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leave()
		leave() // twice is once
	}
	first()
	if len(stile) != 0 {
		t.Errorf("%d places are taken when all left", len(stile))
	}
}

// Who gives up waiting takes no place.
func TestTurnstileGivesUp(t *testing.T) {
	stile := make(turnstile) // no place at all
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := stile.enter(ctx); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

// Who takes long does not compute, and is not waited for.
func TestTurnstileDoesNotWaitForTheSlow(t *testing.T) {
	stile := make(turnstile, 1)
	slow, err := stile.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	next, err := stile.enter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	slow() // its place was given on, and stays with the next
	if len(stile) != 1 {
		t.Errorf("%d places are taken", len(stile))
	}
	next()
}
