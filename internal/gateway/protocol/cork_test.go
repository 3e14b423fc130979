package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// Messages that are sent together arrive one by one, in order, whatever their
// size, and so does what is sent alone before and after.
func TestWriteAllKeepsMessagesApart(t *testing.T) {
	var messages [][]byte
	for i, size := range []int{1, 100, 5000, 70_000, 3, 0, 64 << 10, 1 << 20, 10, 40_000, 40_000} {
		messages = append(messages, fmt.Appendf(nil, "%d:%s", i, strings.Repeat("x", size)))
	}
	failed := make(chan error, 1)
	url := serve(t, protocol.AcceptOptions{MaxPayload: 2 << 20}, func(ctx context.Context, c *protocol.Conn) {
		err := c.Write(ctx, []byte("before"))
		for range 3 {
			err = errors.Join(err, c.WriteAll(time.Minute, slices.Values(messages)))
		}
		failed <- errors.Join(err, c.Write(ctx, []byte("after")))
		_, _ = c.Read(ctx)
	})
	c := dial(t, url, protocol.DialOptions{})
	want := append([][]byte{[]byte("before")}, slices.Concat(messages, messages, messages)...)
	for i, message := range append(want, []byte("after")) {
		got, err := c.Read(within(t))
		if err != nil || string(got) != string(message) {
			t.Fatalf("message %d has %d bytes, %v; want %d", i, len(got), err, len(message))
		}
	}
	if err := <-failed; err != nil {
		t.Error(err)
	}
}

// A client that takes nothing ends the sending, and is not waited for longer.
func TestWriteAllHasItsTime(t *testing.T) {
	failed := make(chan error, 1)
	url := serve(t, protocol.AcceptOptions{}, func(_ context.Context, c *protocol.Conn) {
		big := []byte(strings.Repeat("x", 1<<20))
		failed <- c.WriteAll(500*time.Millisecond, slices.Values(slices.Repeat([][]byte{big}, 100)))
	})
	dial(t, url, protocol.DialOptions{}) // and never reads
	select {
	case err := <-failed:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("it still writes")
	}
}

// The time of one sending is not that of what follows.
func TestWriteAllLeavesNoDeadline(t *testing.T) {
	failed := make(chan error, 1)
	url := serve(t, protocol.AcceptOptions{}, func(ctx context.Context, c *protocol.Conn) {
		const short = 2 * time.Second
		err := c.WriteAll(short, slices.Values([][]byte{[]byte("one")}))
		time.Sleep(short + 200*time.Millisecond)
		failed <- errors.Join(err, c.Write(ctx, []byte("two")))
		_, _ = c.Read(ctx)
	})
	c := dial(t, url, protocol.DialOptions{})
	for _, want := range []string{"one", "two"} {
		if got, err := c.Read(within(t)); err != nil || string(got) != want {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if err := <-failed; err != nil {
		t.Error(err)
	}
}
