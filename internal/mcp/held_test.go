package mcp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/tool"
)

func newHeld(h *heldCalls) *heldCall {
	ctx, cancel := context.WithCancel(context.Background())
	c := &heldCall{cancel: cancel, done: make(chan struct{})}
	go func() {
		<-ctx.Done()
		c.result = &tool.Result{Text: "over"}
		close(c.done)
	}()
	if !h.add(c) {
		return nil
	}
	return c
}

// A held command is waited for, polled and ended by its id.
func TestHeldCalls(t *testing.T) {
	h := &heldCalls{}
	c := newHeld(h)
	if r, err := h.process(t.Context(), &heldArgs{Action: "poll", ID: c.id}); err != nil || !strings.Contains(r.Text, "still running as "+c.id) {
		t.Errorf("%v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := h.process(ctx, &heldArgs{Action: "wait", ID: c.id, Wait: 600}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
	if !strings.Contains(h.text(), c.id+"  running") {
		t.Errorf("the list is %q", h.text())
	}
	if _, err := h.process(t.Context(), &heldArgs{Action: "signal", ID: c.id}); err == nil {
		t.Error("it took a signal")
	}
	time.AfterFunc(10*time.Millisecond, c.cancel)
	if r, err := h.process(t.Context(), &heldArgs{Action: "wait", ID: c.id, Wait: 60}); err != nil || r.Text != "over" {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := h.process(t.Context(), &heldArgs{Action: "poll", ID: c.id}); err == nil {
		t.Error("its result was told twice")
	}
	other := newHeld(h)
	if _, err := h.process(t.Context(), &heldArgs{Action: "kill", ID: other.id}); err != nil || !other.isOver() || h.find(other.id) != nil {
		t.Errorf("kill: %v", err)
	}
}

// No more are held than there is room for; those that are over make room.
func TestHeldCallsAreBounded(t *testing.T) {
	h := &heldCalls{}
	var all []*heldCall
	for range maxHeld {
		all = append(all, newHeld(h))
	}
	if newHeld(h) != nil {
		t.Fatalf("%d are held", len(h.list))
	}
	all[3].cancel()
	<-all[3].done
	if c := newHeld(h); c == nil || h.find(all[3].id) != nil {
		t.Error("one that is over makes no room")
	}
}
