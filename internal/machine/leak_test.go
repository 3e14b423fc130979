package machine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

// TestNothingIsLeft makes thousands of calls of every kind, gives many of them
// up at a random moment and breaks wires under others. Then both sides are as
// they were: the host's goroutines are TestMain's affair.
func TestNothingIsLeft(t *testing.T) {
	calls := 10_000
	if testing.Short() {
		calls = 300
	}
	c, m := cuttable(t, &machine.Options{MaxBreaks: 1 << 30})
	before, err := m.Info(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	work := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range work {
				someCall(t, m, i)
			}
		})
	}
	for i := range calls {
		if i%100 == 50 {
			c.cut()
		}
		work <- i
	}
	close(work)
	wg.Wait()
	list, err := m.Processes(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		if p.Background {
			_ = m.End(patience(t), p.ID, time.Millisecond)
			_ = m.Forget(patience(t), p.ID)
		}
	}
	var after string
	defer func() {
		t.Logf("before %+v\nafter %s\n%d wires", before, after, c.count())
		if !t.Failed() {
			return
		}
		list, err := m.Processes(patience(t))
		for _, p := range list {
			t.Logf("left: %+v %+v", p, p.Result)
		}
		if err != nil {
			t.Error(err)
		}
		t.Logf("alive: %q", alive(t, m))
	}()
	eventually(t, "the guest is as it was", func() bool {
		info, err := m.Info(patience(t))
		if err != nil {
			t.Fatal(err)
		}
		after = fmt.Sprintf("%+v", info)
		const others = 2 // a wire that is about to close, and the watch of the guest's own socket
		return info.Processes == 0 && info.Goroutines <= before.Goroutines+others && info.Descriptors <= before.Descriptors+others
	})
	if left := alive(t, m); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
}

// someCall does one of many things, for a random time at most.
func someCall(t *testing.T, m *machine.Machine, i int) {
	t.Helper()
	ctx := t.Context()
	if i%3 != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(20_000))*time.Microsecond)
		defer cancel()
	}
	commands := []machine.Command{
		{Argv: []string{"true"}},
		{Shell: "echo out; echo err >&2; exit 3"},
		{Argv: []string{"cat"}, Stdin: strings.NewReader(strings.Repeat("x", 100_000)), Stdout: io.Discard},
		{Argv: []string{"no-such-program"}},
		{Argv: []string{"sleep", "0.02"}, Grace: time.Millisecond},
		{Shell: "(setsid sleep 1000 &) ; sleep 0.005", EndTree: true, Grace: time.Millisecond},
		{Argv: []string{"true"}, TTY: &machine.Size{Rows: 1, Cols: 1}},
		{Argv: []string{"sleep", "1000"}, Timeout: 10 * time.Millisecond, Grace: time.Millisecond},
		{Argv: []string{"head", "-c", "1000000", "/dev/zero"}, OutputLimit: 1000},
		{Argv: []string{"true"}, Dir: "/no/such"},
	}
	var err error
	switch pick := i % (len(commands) + 2); {
	case pick < len(commands):
		_, err = m.Exec(ctx, &commands[pick])
	case pick == len(commands):
		err = m.Ping(ctx)
	default:
		var id string
		if id, err = m.Start(ctx, &machine.Command{Argv: []string{"true"}}); err == nil {
			_, err = m.Wait(ctx, id)
			_ = m.Forget(t.Context(), id)
		}
	}
	for _, fine := range []error{nil, context.DeadlineExceeded, context.Canceled, machine.ErrNotFound, machine.ErrNoDirectory, machine.ErrLost} {
		if errors.Is(err, fine) {
			return
		}
	}
	t.Errorf("call %d: %v", i, err)
}

func TestCloseEndsEverything(t *testing.T) {
	g, m := start(t)
	results := make(chan error, 10)
	for range 10 {
		go func() {
			_, err := m.Exec(t.Context(), &machine.Command{Argv: []string{"sleep", "1000"}})
			results <- err
		}()
	}
	eventually(t, "all run", func() bool { return len(alive(t, g.Machine(t, nil))) == 10 })
	_ = m.Close()
	for range 10 {
		if err := <-results; !errors.Is(err, machine.ErrClosed) {
			t.Errorf("%v", err)
		}
	}
	_ = m.Close()
}
