package docker

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// underWay is a command that waits to be told to end, so that a test can do
// something to its sandbox in the meantime.
type underWay struct {
	machine *machine.Machine
	result  chan error
	out     bytes.Buffer
}

func begin(t *testing.T, m *machine.Machine) *underWay {
	t.Helper()
	u := &underWay{machine: m, result: make(chan error, 1)}
	go func() {
		_, err := m.Exec(t.Context(), &machine.Command{
			Shell:  "echo begun; touch /tmp/begun; while ! [ -e /tmp/go ]; do sleep 0.05; done; echo ended",
			Stdout: &u.out,
		})
		u.result <- err
	}()
	u.tell(t, "while ! [ -e /tmp/begun ]; do sleep 0.05; done")
	return u
}

// tell runs a script beside it, over as many wires as that takes.
func (u *underWay) tell(t *testing.T, script string) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if _, err = u.machine.Exec(t.Context(), &machine.Command{Shell: script}); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// end has the command end, and checks that nothing of it was lost.
func (u *underWay) end(t *testing.T) {
	t.Helper()
	u.tell(t, "touch /tmp/go")
	select {
	case err := <-u.result:
		if err != nil || u.out.String() != "begun\nended\n" {
			t.Errorf("%v, %q", err, u.out.String())
		}
	case <-time.After(time.Minute):
		t.Fatal("the command does not end")
	}
}

// TestCommandSurvivesAPause pauses a sandbox while a command runs in it.
func TestCommandSurvivesAPause(t *testing.T) {
	onEachTransport(t, func(t *testing.T, l *lab) {
		i := l.start(t, withTools)
		m := machine.New(i.Dial, nil)
		defer m.Close()
		u := begin(t, m)
		if err := i.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := m.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a paused sandbox: %v", err)
		}
		if err := i.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		u.end(t)
	})
}

// TestCommandSurvivesTheEngine restarts an engine that lets containers live on.
func TestCommandSurvivesTheEngine(t *testing.T) {
	for _, transport := range []Transport{TransportSocket, TransportAttach} {
		t.Run(string(transport), func(t *testing.T) {
			own := enginetest.PrivateDocker(t, enginetest.Options{LiveRestore: true})
			l := newLab(t, own.Host(), Docker, withGuest(t), func(o *Options) { o.Transport = transport })
			m := machine.New(l.start(t).Dial, &machine.Options{DialTimeout: time.Minute}) // an engine takes its time
			defer m.Close()
			u := begin(t, m)
			if err := own.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := own.StartAgain(); err != nil {
				t.Fatal(err)
			}
			u.end(t)
		})
	}
}

// withTools has an image with a shell and what it needs.
func withTools(s *sandbox.Spec) { s.Image, s.Workdir = enginetest.Image, "/" }

// TestKillLoopOnThePump has code inside kill, for seconds, every process that
// carries a wire through the engine. A command in the sandbox meanwhile has a
// result or a clear error, and afterwards the sandbox is as it was.
func TestKillLoopOnThePump(t *testing.T) {
	l := newLab(t, enginetest.Docker(t), Docker, withGuest(t), func(o *Options) { o.Transport = TransportAttach })
	i := l.start(t, withTools)
	m := machine.New(i.Dial, nil)
	defer m.Close()
	const loop = `
import os, signal, time
end = time.monotonic() + 4
while time.monotonic() < end:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if b"\0pass\0" in open("/proc/" + pid + "/cmdline", "rb").read(): os.kill(int(pid), signal.SIGKILL)
        except OSError: pass
open("/tmp/over", "w")
`
	if _, err := m.Start(t.Context(), &machine.Command{Argv: []string{"python3", "-c", loop}}); err != nil && !errors.Is(err, machine.ErrLost) {
		t.Fatal(err)
	}
	for begin := time.Now(); time.Since(begin) < 2*time.Second; {
		_, err := m.Exec(t.Context(), &machine.Command{Argv: []string{"true"}})
		if err != nil && !errors.Is(err, machine.ErrLost) && !errors.Is(err, machine.ErrBroken) {
			t.Errorf("meanwhile: %v", err)
		}
	}
	after := &underWay{machine: machine.New(i.Dial, &machine.Options{MaxBreaks: 1 << 20})}
	defer after.machine.Close()
	after.tell(t, "while ! [ -e /tmp/over ]; do sleep 0.05; done")
	fresh := machine.New(i.Dial, nil)
	defer fresh.Close()
	if out, code := inMachine(t, fresh, "echo as it was"); code != 0 || out != "as it was\n" {
		t.Errorf("afterwards: exit %d, %q", code, out)
	}
}
