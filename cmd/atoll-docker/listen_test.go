package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// unharmed has this program survive the signals that it sends itself, also where
// the context that is to hear them does not.
func unharmed(t *testing.T) {
	t.Helper()
	spare := make(chan os.Signal, 16)
	signal.Notify(spare, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(spare) })
}

// soon waits for something to end.
func soon(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("in vain: " + what)
	}
}

// Nobody listens for signals before somebody waits for one: not to look at the
// context, and not to make one of it that ends with nothing more.
func TestNobodyListensBeforeSomebodyWaits(t *testing.T) {
	type key struct{}
	s := &onSignal{}
	child := context.WithoutCancel(context.WithValue(s, key{}, 1))
	_, limited := s.Deadline()
	if s.Err() != nil || s.Value(key{}) != nil || limited || child.Value(key{}) != 1 || child.Err() != nil {
		t.Errorf("%v %v %v", s.Err(), s.Value(key{}), limited)
	}
	s.deafen() // of nobody
	if s.heard.Load() != nil {
		t.Fatal("somebody listens")
	}
	s.Done()
	if s.heard.Load() == nil {
		t.Fatal("nobody listens")
	}
	s.deafen()
}

// Every signal to leave ends the context, and all that was made of it.
func TestSignalsEndTheContext(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			unharmed(t)
			s := &onSignal{}
			defer s.deafen()
			child, cancel := context.WithCancel(s)
			defer cancel()
			limited, cancel := context.WithTimeout(context.WithValue(s, t, 1), time.Hour)
			defer cancel()
			left, leave := context.WithCancel(s)
			leave()
			told, untold := make(chan struct{}), make(chan struct{})
			context.AfterFunc(s, func() { close(told) })
			stop := context.AfterFunc(s, func() { close(untold) })
			if left.Err() == nil || s.Err() != nil || child.Err() != nil || limited.Err() != nil || !stop() {
				t.Fatalf("before the signal: %v %v %v", s.Err(), child.Err(), limited.Err())
			}
			must(t, syscall.Kill(os.Getpid(), sig))
			soon(t, "the context ends", s.Done())
			soon(t, "its child ends", child.Done())
			soon(t, "one with a value and a limit ends", limited.Done())
			soon(t, "who asked is told", told)
			for _, ctx := range []context.Context{s, child, limited} {
				if !errors.Is(ctx.Err(), context.Canceled) {
					t.Errorf("%v", ctx.Err())
				}
			}
			select {
			case <-untold:
				t.Error("who asked not to be told is told")
			default:
			}
		})
	}
}

// Many may be the first to wait.
func TestManyWaitForOneSignal(t *testing.T) {
	unharmed(t)
	s := &onSignal{}
	defer s.deafen()
	var waiting, ready sync.WaitGroup
	for range 50 {
		ready.Add(1)
		waiting.Go(func() {
			done := s.Done()
			ready.Done()
			<-done
		})
	}
	ready.Wait()
	must(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	over := make(chan struct{})
	go func() { defer close(over); waiting.Wait() }()
	soon(t, "all have heard", over)
}

// Who is deaf hears nothing any more, and waits for nothing.
func TestDeafen(t *testing.T) {
	s := &onSignal{}
	child, cancel := context.WithCancel(s)
	defer cancel()
	s.deafen()
	s.deafen()
	soon(t, "its child ends", child.Done())
	if !errors.Is(s.Err(), context.Canceled) {
		t.Errorf("%v", s.Err())
	}
}

// sleepers counts the commands of an exec that run in the container.
func (d *dock) sleepers() string {
	d.Helper()
	return strings.TrimSpace(d.say("", "exec NAME sh -c ps_|_grep_-c_[s]leep.4321").Out)
}

// However a client of exec ends, its command ends too: at once, before anybody
// listens for signals; later, when the client says so with its code; and when it
// can say nothing, also where the command leaves its input unread.
func TestEndedClientsTakeTheirCommandAlong(t *testing.T) {
	t.Parallel()
	for _, m := range machineries() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			d := ourDock(t, m)
			d.say("", "run -d --name NAME --network none IMAGE sleep 1000")
			for _, e := range []struct {
				line   string
				signal syscall.Signal
				code   int // -1: any
			}{
				{"exec NAME sh -c sleep_0.5;_echo_ready;_exec_sleep_4321", syscall.SIGINT, exitInterrupted},
				{"exec NAME sh -c sleep_0.5;_echo_ready;_exec_sleep_4321", syscall.SIGTERM, exitInterrupted},
				{"exec NAME sh -c sleep_0.5;_echo_ready;_exec_sleep_4321", syscall.SIGHUP, exitInterrupted},
				{"exec NAME sh -c echo_ready;_exec_sleep_4321", syscall.SIGINT, exitInterrupted},
				{"exec NAME sh -c echo_ready;_exec_sleep_4321", syscall.SIGKILL, -1},
				{"exec -i NAME sh -c sleep_0.5;_echo_ready;_exec_sleep_4321", syscall.SIGKILL, -1},
			} {
				job := d.beginWith(strings.NewReader(strings.Repeat("x", 4<<20)), e.line)
				job.until("ready\n")
				must(t, job.cmd.Process.Signal(e.signal))
				if got := job.end(); got.Err != "" || e.code >= 0 && got.Code != e.code || got.Code == 0 {
					t.Errorf("docker %s, %v: %+v", e.line, e.signal, got)
				}
				for deadline := time.Now().Add(patience); d.sleepers() != "0"; time.Sleep(20 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("docker %s, %v: its command runs on", e.line, e.signal)
					}
				}
			}
		})
	}
}
