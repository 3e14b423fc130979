package machine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/wire"
)

// signalWriter closes ready when something is written to it.
type signalWriter struct {
	once  sync.Once
	ready chan struct{}
}

func newSignalWriter() *signalWriter { return &signalWriter{ready: make(chan struct{})} }

func (w *signalWriter) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.ready) })
	return len(b), nil
}

// TestUnboundCancelled: the whole tree ends, and the result comes beside the error.
func TestUnboundCancelled(t *testing.T) {
	g, watcher := listening(t)
	for _, name := range []string{"child", "ignores TERM", "new session", "double fork", "stopped"} {
		t.Run(name, func(t *testing.T) {
			_, m := unboundOn(t, g)
			ctx, cancel := context.WithCancel(patience(t))
			ready := newSignalWriter()
			go func() { <-ready.ready; cancel() }()
			result, err := m.Exec(ctx, &machine.Command{
				Argv: []string{"/bin/sh", "-c", "echo ready; " + trees[name]}, Stdout: ready, Grace: 100 * time.Millisecond,
			})
			if !errors.Is(err, context.Canceled) || errors.Is(err, machine.ErrLost) || result == nil || result.ExitCode == 0 {
				t.Errorf("%+v %v", result, err)
			}
			if left := alive(t, watcher); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// TestUnboundCancelledBefore starts nothing.
func TestUnboundCancelledBefore(t *testing.T) {
	g, watcher := listening(t)
	_, m := unboundOn(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	marker := filepath.Join(g.Dir, "ran")
	if result, err := m.Exec(ctx, &machine.Command{Argv: []string{"touch", marker}}); !errors.Is(err, context.Canceled) || result != nil {
		t.Errorf("%+v %v", result, err)
	}
	check(t, watcher.Ping(patience(t)))
	if _, err := os.Stat(marker); err == nil {
		t.Error("it ran")
	}
}

// unread is more input than a command that reads none of it, and all that lies
// between, can hold.
func unread() *bytes.Reader { return bytes.NewReader(make([]byte, 8<<20)) }

// TestUnboundEndsWithItsConnection: a client that is no more, as after kill -9, takes its
// command with it, also where input that the command does not read lies between.
// It is not run again.
func TestUnboundEndsWithItsConnection(t *testing.T) {
	g, watcher := listening(t)
	marker := filepath.Join(g.Dir, "starts")
	for name, command := range map[string]*machine.Command{
		"silent":            {Shell: "echo ready; sleep 1000"},
		"with unread input": {Shell: "sleep 0.3; echo ready; sleep 1000", Stdin: unread()},
		"with children":     {Shell: "setsid sleep 1000 & setsid sleep 1000 & echo ready; wait"},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(marker)
			c, m := unboundOn(t, g)
			ready := newSignalWriter()
			command.Shell = "echo x >> " + marker + "; " + command.Shell
			command.Stdout, command.Grace = ready, time.Millisecond
			go func() { <-ready.ready; c.cut() }()
			if result, err := m.Exec(patience(t), command); !errors.Is(err, machine.ErrLost) || result != nil {
				t.Errorf("%+v %v", result, err)
			}
			eventually(t, "all is ended", func() bool { return len(alive(t, watcher)) == 0 })
			if starts, err := os.ReadFile(marker); string(starts) != "x\n" || err != nil || c.count() != 1 {
				t.Errorf("started %q times, %v, over %d wires", starts, err, c.count())
			}
		})
	}
}

// TestUnboundWriterThatFails: a command whose output has nowhere to go ends.
func TestUnboundWriterThatFails(t *testing.T) {
	g, watcher := listening(t)
	for name, command := range map[string]*machine.Command{
		"writes on":                   {Shell: "yes"},
		"silent from then on":         {Shell: "echo x; sleep 1000"},
		"silent, with unread input":   {Shell: "sleep 0.3; echo x; sleep 1000", Stdin: unread()},
		"only its errors are unheard": {Shell: "echo x >&2; sleep 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			_, m := unboundOn(t, g)
			command.Grace = time.Millisecond
			command.Stdout = writerFunc(func([]byte) (int, error) { return 0, syscall.EPIPE })
			command.Stderr = command.Stdout
			if result, err := m.Exec(patience(t), command); !errors.Is(err, syscall.EPIPE) || result != nil {
				t.Errorf("%+v %v", result, err)
			}
			eventually(t, "it is ended", func() bool { return len(alive(t, watcher)) == 0 })
		})
	}
}

// TestUnboundOnAClosedMachine: Close ends what runs, and nothing is started after it.
func TestUnboundOnAClosedMachine(t *testing.T) {
	g, watcher := listening(t)
	_, m := unboundOn(t, g)
	ready := newSignalWriter()
	go func() { <-ready.ready; _ = m.Close() }()
	if result, err := m.Exec(patience(t), &machine.Command{Shell: "echo x; sleep 1000", Stdout: ready, Grace: time.Millisecond}); !errors.Is(err, machine.ErrClosed) || result != nil {
		t.Errorf("%+v %v", result, err)
	}
	eventually(t, "it is ended", func() bool { return len(alive(t, watcher)) == 0 })
	if result, err := m.Exec(patience(t), &machine.Command{Argv: []string{"true"}}); !errors.Is(err, machine.ErrClosed) || result != nil {
		t.Errorf("afterwards: %+v %v", result, err)
	}
}

// TestUnboundTooManyAtOnce: a guest that runs as many commands as it may refuses
// more, and loses none of those.
func TestUnboundTooManyAtOnce(t *testing.T) {
	g, watcher := listening(t)
	const limit, more = 256, 8
	ctx, cancel := context.WithCancel(patience(t))
	defer cancel()
	began, over := make(chan struct{}, limit), make(chan error, limit)
	for range limit {
		_, m := unboundOn(t, g)
		ready := writerFunc(func(b []byte) (int, error) { began <- struct{}{}; return len(b), nil })
		go func() {
			_, err := m.Exec(ctx, &machine.Command{Argv: []string{"/bin/sh", "-c", "echo; exec sleep 1000"}, Stdout: ready, Grace: time.Millisecond})
			over <- err
		}()
	}
	for range limit {
		select {
		case <-began:
		case err := <-over:
			t.Fatalf("one of %d: %v", limit, err)
		}
	}
	for range more {
		_, m := unboundOn(t, g)
		if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"true"}}); !errors.Is(err, machine.ErrBusy) {
			t.Errorf("one more: %v", err)
		}
	}
	if len(over) > 0 {
		t.Errorf("%d of them are over", len(over))
	}
	cancel()
	for range limit {
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	eventually(t, "all are ended", func() bool {
		info, err := watcher.Info(patience(t))
		return err == nil && info.Processes == 0
	})
	c, m := unboundOn(t, g)
	if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"true"}}); err != nil || c.count() != 1 {
		t.Errorf("afterwards: %v, over %d wires", err, c.count())
	}
}

// TestPausedGuestKeepsItsUnboundConnection: a guest that stands still for longer than it
// takes to be asked twice whether it lives has its command when it goes on.
func TestPausedGuestKeepsItsUnboundConnection(t *testing.T) {
	t.Parallel()
	g := machinetest.Start(t, nil)
	_, m := unboundOn(t, g)
	began := make(chan struct{}, 1)
	ready := writerFunc(func(b []byte) (int, error) {
		select {
		case began <- struct{}{}:
		default:
		}
		return len(b), nil
	})
	over := make(chan error, 1)
	go func() {
		result, err := m.Exec(patience(t), &machine.Command{Argv: []string{"/bin/sh", "-c", "echo; sleep 1; echo; exit 3"}, Stdout: ready})
		if err == nil && result.ExitCode != 3 {
			err = fmt.Errorf("%+v", result)
		}
		over <- err
	}()
	<-began
	stop(t, g)
	select {
	case err := <-over:
		t.Errorf("while the guest is paused: %v", err)
	case <-time.After(wire.KeepAlive + wire.WriteTimeout + 3*time.Second):
	}
	resume(t, g)
	if err := <-over; err != nil {
		t.Error(err)
	}
}
