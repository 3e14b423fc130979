package machine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/wire"
)

// cutter dials, and can cut all it has dialled.
type cutter struct {
	guest *machinetest.Guest
	mu    sync.Mutex
	conns []net.Conn
	dials int
}

func (c *cutter) dial(ctx context.Context) (net.Conn, error) {
	conn, err := c.guest.Dial(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	c.dials++
	return conn, nil
}

// count is how many wires were dialled.
func (c *cutter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dials
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

func cuttable(t *testing.T, options *machine.Options) (*cutter, *machine.Machine) {
	t.Helper()
	c := &cutter{guest: machinetest.Start(t, nil)}
	m := machine.New(c.dial, options)
	t.Cleanup(func() { _ = m.Close() })
	return c, m
}

func TestOneWireIsKept(t *testing.T) {
	c, m := cuttable(t, nil)
	for range 100 {
		if err := m.Ping(patience(t)); err != nil {
			t.Fatal(err)
		}
	}
	if c.count() != 1 {
		t.Errorf("%d dials", c.count())
	}
	c.cut()
	if err := m.Ping(patience(t)); err != nil {
		t.Errorf("after a cut: %v", err)
	}
	if c.count() != 2 {
		t.Errorf("%d dials", c.count())
	}
}

// TestCommandSurvivesBrokenWires cuts the wire again and again while a command
// copies its input to its output: not a byte may be lost or doubled.
func TestCommandSurvivesBrokenWires(t *testing.T) {
	c, m := cuttable(t, &machine.Options{MaxBreaks: 1000})
	data := make([]byte, 20<<20)
	random := rand.NewChaCha8([32]byte{2})
	_, _ = random.Read(data)
	stop := make(chan struct{})
	var cutting sync.WaitGroup
	cutting.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				c.cut()
			}
		}
	})
	var out bytes.Buffer
	result, err := m.Exec(patience(t), &machine.Command{Shell: "cat; echo done >&2; exit 9", Stdin: &slowReader{data: data}, Stdout: &out})
	close(stop)
	cutting.Wait()
	if err != nil || result.ExitCode != 9 || result.Stderr.Total != 5 {
		t.Fatalf("%+v %v", result, err)
	}
	if !bytes.Equal(out.Bytes(), data) {
		t.Errorf("%d bytes came back of %d, and not the same", out.Len(), len(data))
	}
	t.Logf("%d wires", c.count())
	if c.count() < 5 {
		t.Error("hardly ever cut: the test tests little")
	}
}

// slowReader gives its data in pieces, with pauses.
type slowReader struct{ data []byte }

func (r *slowReader) Read(b []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	time.Sleep(500 * time.Microsecond)
	n := copy(b, r.data)
	r.data = r.data[n:]
	return n, nil
}

func TestShortCommandsSurviveBrokenWires(t *testing.T) {
	c, m := cuttable(t, &machine.Options{MaxBreaks: 100000})
	stop := make(chan struct{})
	var cutting sync.WaitGroup
	cutting.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
				c.cut()
			}
		}
	})
	dir := c.guest.Dir
	for i := range 200 { // each runs once, whatever happens to the wire
		var out bytes.Buffer
		result, err := m.Exec(patience(t), &machine.Command{Argv: []string{"/bin/sh", "-c", fmt.Sprintf("echo %d | tee -a %s/log", i, dir)}, Stdout: &out})
		if err != nil || result.ExitCode != 0 || out.String() != fmt.Sprintln(i) {
			t.Fatalf("%d: %+v %v %q", i, result, err, out.String())
		}
	}
	close(stop)
	cutting.Wait()
	log := sh(t, m, "cat "+dir+"/log").out
	for i, line := range strings.Split(strings.TrimSpace(log), "\n") {
		if line != fmt.Sprint(i) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
	t.Logf("%d wires", c.count())
}

func TestTooManyBreaks(t *testing.T) {
	c, m := cuttable(t, &machine.Options{MaxBreaks: 3})
	var err error
	for range 10 {
		if err = m.Ping(patience(t)); err != nil {
			break
		}
		c.cut()
		time.Sleep(10 * time.Millisecond)
	}
	if !errors.Is(err, machine.ErrBroken) {
		t.Fatalf("%v", err)
	}
	if err := m.Ping(patience(t)); !errors.Is(err, machine.ErrBroken) {
		t.Errorf("it does not stay so: %v", err)
	}
}

func TestGuestDies(t *testing.T) {
	g := machinetest.Start(t, nil)
	m := g.Machine(t, &machine.Options{DialTimeout: 200 * time.Millisecond})
	time.AfterFunc(200*time.Millisecond, func() { _ = g.Process.Kill() })
	_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"sleep", "1000"}})
	if !errors.Is(err, machine.ErrLost) {
		t.Errorf("%v", err)
	}
	if err := m.Ping(patience(t)); !errors.Is(err, machine.ErrLost) {
		t.Errorf("%v", err)
	}
}

// TestGuestIsRestarted gives the machine another guest while a command runs.
func TestGuestIsRestarted(t *testing.T) {
	first, second := machinetest.Start(t, nil), machinetest.Start(t, nil)
	var mu sync.Mutex
	guest := first
	m := machine.New(func(ctx context.Context) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		return guest.Dial(ctx)
	}, nil)
	defer m.Close()
	time.AfterFunc(200*time.Millisecond, func() {
		mu.Lock()
		defer mu.Unlock()
		guest = second
		_ = first.Process.Kill()
	})
	_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"sleep", "1000"}})
	if !errors.Is(err, machine.ErrLost) || !strings.Contains(err.Error(), "restarted") {
		t.Errorf("%v", err)
	}
	if err := m.Ping(patience(t)); err != nil {
		t.Errorf("the new guest: %v", err)
	}
}

func TestEpochFencesOlderWires(t *testing.T) {
	g := machinetest.Start(t, nil)
	older := g.Machine(t, &machine.Options{Client: "gateway", Epoch: 10})
	if err := older.Ping(patience(t)); err != nil {
		t.Fatal(err)
	}
	newer := g.Machine(t, &machine.Options{Client: "gateway", Epoch: 100})
	if err := newer.Ping(patience(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the older is fenced off", func() bool { return older.Ping(patience(t)) != nil })
	err := older.Ping(patience(t))
	if !errors.Is(err, machine.ErrLost) || !strings.Contains(err.Error(), "taken over") {
		t.Errorf("%v", err)
	}
	stranger := g.Machine(t, nil)
	if err := errors.Join(newer.Ping(patience(t)), stranger.Ping(patience(t))); err != nil {
		t.Errorf("others are not concerned: %v", err)
	}
}

func TestPausedGuest(t *testing.T) {
	g := machinetest.Start(t, nil)
	m := g.Machine(t, nil)
	if err := m.Ping(patience(t)); err != nil {
		t.Fatal(err)
	}
	stop(t, g)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := m.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	resume(t, g)
	if err := m.Ping(patience(t)); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

// A welcome is an answer; after it, a ping is sent.
func TestReach(t *testing.T) {
	g := machinetest.Start(t, nil)
	m := g.Machine(t, nil)
	if err := m.Reach(patience(t)); err != nil {
		t.Fatal(err)
	}
	stop(t, g)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := m.Reach(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("over a wire that stands: %v", err)
	}
	other := g.Machine(t, nil)
	if err := other.Reach(ctx); err == nil {
		t.Error("a guest that does not welcome was reached")
	}
	resume(t, g)
	if err := other.Reach(patience(t)); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

func TestCancelWhileThePausedGuestCannotAnswer(t *testing.T) {
	g := machinetest.Start(t, nil)
	killed := make(chan struct{}, 1)
	m := g.Machine(t, &machine.Options{Kill: func(context.Context) error {
		killed <- struct{}{}
		return g.Process.Kill()
	}})
	ctx, cancel := context.WithCancel(patience(t))
	time.AfterFunc(200*time.Millisecond, func() {
		stop(t, g)
		cancel()
	})
	begin := time.Now()
	_, err := m.Exec(ctx, &machine.Command{Argv: []string{"sleep", "1000"}, Grace: time.Millisecond})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, machine.ErrLost) {
		t.Errorf("%v", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	select {
	case <-killed:
	default:
		t.Error("the sandbox was not killed from outside")
	}
}

func TestWireSocketIsNotFollowed(t *testing.T) {
	g, m := start(t)
	if err := m.Ping(patience(t)); err != nil {
		t.Fatal(err)
	}
	conn, err := g.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if pid, err := wire.PeerPID(conn); err != nil || pid != g.Process.Pid {
		t.Errorf("peer %d %v, want %d", pid, err, g.Process.Pid)
	}
	sh(t, m, fmt.Sprintf("cd %s; ln -s guest.sock link; mkfifo fifo; echo > file", g.Dir))
	for _, name := range []string{"link", "fifo", "file", "."} {
		if conn, err := wire.DialSocket(t.Context(), g.Dir+"/"+name); err == nil {
			conn.Close()
			t.Errorf("%s was dialled", name)
		}
	}
}
