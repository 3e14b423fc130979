package membudget_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/membudget"
)

// A holder gets its part and no more, and what it gives back others can have.
func TestBudget(t *testing.T) {
	b := membudget.New(100<<10, 60<<10)
	alice := membudget.Share{Budget: b, Holder: "alice", MinBuffer: 40 << 10}
	again := membudget.Share{Budget: b, Holder: "alice", MinBuffer: 40 << 10}
	bob := membudget.Share{Budget: b, Holder: "bob", MinBuffer: 40 << 10}
	carol := membudget.Share{Budget: b, Holder: "carol", MinBuffer: 40 << 10}
	for _, c := range []struct {
		name  string
		share *membudget.Share
		want  error
	}{{"first", &alice, nil}, {"second of the same", &again, membudget.ErrHolder}, {"another", &bob, nil}, {"a third", &carol, membudget.ErrTotal}} {
		if _, err := c.share.Grow(nil, 1); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	alice.Free()
	if _, err := carol.Grow(nil, 1); err != nil {
		t.Errorf("after the first has given back: %v", err)
	}
	bob.Free()
	carol.Free()
	if b.Used() != 0 || b.Refused() != 2 {
		t.Errorf("%d bytes held, %d refused", b.Used(), b.Refused())
	}
}

// Small requests pass however much is held; larger ones are read whole or refused.
func TestReadAll(t *testing.T) {
	b := membudget.New(64<<10, 0)
	for _, c := range []struct {
		size int
		want error
	}{{0, nil}, {membudget.FreeBytes - 1, nil}, {membudget.FreeBytes, nil}, {20 << 10, nil}, {65 << 10, membudget.ErrTotal}} {
		share := membudget.Share{Budget: b, MinBuffer: 8 << 10}
		text := strings.Repeat("x", c.size)
		data, err := membudget.ReadAll(strings.NewReader(text), &share)
		if !errors.Is(err, c.want) || err == nil && string(data) != text {
			t.Errorf("%d bytes: %d read, %v", c.size, len(data), err)
		}
		share.Free()
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are still held", b.Used())
	}
}

// The deadline moves on with what has arrived.
func TestPace(t *testing.T) {
	var deadlines []time.Time
	begun := time.Now()
	r := membudget.Pace{Grace: time.Minute, Rate: 10}.Reader(strings.NewReader(strings.Repeat("x", 600)), func(d time.Time) { deadlines = append(deadlines, d) })
	if _, err := io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	first, last := deadlines[0].Sub(begun), deadlines[len(deadlines)-1].Sub(deadlines[0])
	if first < time.Minute || first > 2*time.Minute || last != time.Minute {
		t.Errorf("the first deadline is after %s, the last one %s later", first, last)
	}
}
