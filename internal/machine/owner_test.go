package machine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
)

// owned is a connection of a gateway.
type owned struct {
	net.Conn
	epoch uint64
}

func (c owned) Fence() uint64 { return c.epoch }

// ownedBy is the machine that a gateway of an epoch has on a guest.
func ownedBy(t *testing.T, g *machinetest.Guest, epoch uint64, o *machine.Options) *machine.Machine {
	t.Helper()
	m := machine.New(func(ctx context.Context) (net.Conn, error) {
		conn, err := g.Dial(ctx)
		return owned{conn, epoch}, err
	}, o)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// TestOlderGatewayIsRefused: when a later gateway has spoken to a guest, the one before it
// loses its wires and gets no other, whatever kind it asks for; its commands are left to the
// later one.
func TestOlderGatewayIsRefused(t *testing.T) {
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprintf("direct %v", direct), func(t *testing.T) {
			g := machinetest.Start(t, nil)
			older, later := ownedBy(t, g, 4, &machine.Options{Direct: direct}), ownedBy(t, g, 5, nil)
			if got := sh(t, older, "echo mine"); got.out != "mine\n" {
				t.Fatalf("%q", got.out)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := older.Exec(t.Context(), &machine.Command{Argv: []string{"sleep", "60"}})
				ended <- err
			}()
			eventually(t, "the command runs", func() bool { return strings.Contains(sh(t, older, "ps ax").out, "sleep 60") })
			if got := sh(t, later, "echo taken over"); got.out != "taken over\n" {
				t.Fatalf("%q", got.out)
			}
			select {
			case err := <-ended:
				wantErr(t, err, machine.ErrLost)
			case <-time.After(20 * time.Second):
				t.Error("the older gateway still has its command")
			}
			_, err := older.Exec(patience(t), &machine.Command{Argv: []string{"true"}})
			if err == nil || !strings.Contains(err.Error(), "another gateway has taken the sandbox over") && !errors.Is(err, machine.ErrLost) {
				t.Errorf("the older gateway runs commands: %v", err)
			}
			if got := sh(t, ownedBy(t, g, 5, nil), "echo beside"); got.out != "beside\n" {
				t.Errorf("another process of the same gateway: %q", got.out)
			}
		})
	}
}

// TestCommandOutlivesItsTransport: the server between may be away for longer than a dial
// takes, and the command is found again; a guest that is gone is not waited for.
func TestCommandOutlivesItsTransport(t *testing.T) {
	g := machinetest.Start(t, nil)
	var away, lost atomic.Bool
	var last atomic.Pointer[net.Conn]
	m := machine.New(func(ctx context.Context) (net.Conn, error) {
		if away.Load() {
			return nil, fmt.Errorf("%w: connection refused", machine.ErrTransport)
		}
		conn, err := g.Dial(ctx)
		lost.Store(false)
		last.Store(&conn)
		return carried{conn, &lost}, err
	}, &machine.Options{DialTimeout: 500 * time.Millisecond})
	defer m.Close()
	got := make(chan captured, 1)
	go func() { got <- sh(t, m, "echo begin; sleep 2; echo end") }()
	eventually(t, "the command runs", func() bool { return last.Load() != nil })
	time.Sleep(500 * time.Millisecond)
	away.Store(true)
	lost.Store(true)
	_ = (*last.Load()).Close()
	time.Sleep(5 * time.Second) // many times DialTimeout
	away.Store(false)
	if c := <-got; c.out != "begin\nend\n" || c.ExitCode != 0 {
		t.Errorf("%+v", c)
	}
}

// late is a connection whose first bytes come when the time of the dial is over.
type late struct {
	net.Conn
	over chan struct{}
	once sync.Once
}

func (c *late) SetDeadline(at time.Time) error {
	if at.Before(time.Now()) {
		c.once.Do(func() { close(c.over) })
		return nil
	}
	return c.Conn.SetDeadline(at)
}

func (c *late) Close() error {
	c.once.Do(func() { close(c.over) })
	return c.Conn.Close()
}

func (c *late) Read(p []byte) (int, error) {
	<-c.over
	return c.Conn.Read(p)
}

// TestCommandOutlivesSlowDials: a handshake that ends when the time of its dial does is no break
// of the guest's, and the command under way is found by a later one.
func TestCommandOutlivesSlowDials(t *testing.T) {
	g := machinetest.Start(t, nil)
	var slow atomic.Int64 // dials that are to be
	var cut sync.Map
	m := machine.New(func(ctx context.Context) (net.Conn, error) {
		conn, err := g.Dial(ctx)
		if err != nil {
			return nil, err
		}
		cut.Store(conn, true)
		if slow.Add(-1) >= 0 {
			return &late{Conn: conn, over: make(chan struct{})}, nil
		}
		return conn, nil
	}, &machine.Options{DialTimeout: time.Second, MaxBreaks: 5}) // more than a handshake takes on a busy machine
	defer m.Close()
	said, out := io.Pipe()
	got := make(chan error, 1)
	go func() {
		result, err := m.Exec(patience(t), &machine.Command{Argv: []string{"/bin/sh", "-c", "echo begin; sleep 2; echo end"}, Stdout: out})
		if err == nil && result.ExitCode != 0 {
			err = fmt.Errorf("exit code %d", result.ExitCode)
		}
		got <- errors.Join(err, out.Close())
	}()
	lines := bufio.NewScanner(said)
	if !lines.Scan() || lines.Text() != "begin" {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	slow.Store(5)
	cut.Range(func(conn, _ any) bool { return conn.(net.Conn).Close() == nil })
	if !lines.Scan() || lines.Text() != "end" || lines.Scan() {
		t.Errorf("%q, %v", lines.Text(), lines.Err())
	}
	if err := <-got; err != nil || slow.Load() >= 0 {
		t.Errorf("%v, %d dials left", err, slow.Load())
	}
}
