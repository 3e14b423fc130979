package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/wire"
)

// What the sandbox can do to its own end of the wire is noticed, never followed.
func TestReplacedSocket(t *testing.T) {
	const socket = "/.atoll/wire/guest.sock"
	cases := []struct {
		name    string
		attack  string
		want    error
		message string
	}{
		{"another process listens", "/.atoll/guest pose " + socket + " >/tmp/pose 2>&1 & while ! grep -q posing /tmp/pose; do sleep 0.01; done", sandbox.ErrDenied, "replaced from inside"},
		{"link to the host's own socket", "ln -sf /run/docker.sock " + socket, nil, ""},
		{"link to another listener", "/.atoll/guest pose /.atoll/wire/other >/tmp/pose 2>&1 & while ! grep -q posing /tmp/pose; do sleep 0.01; done; ln -sf other " + socket, wire.ErrProtocol, "not a socket"},
		{"named pipe", "rm " + socket + " && mkfifo " + socket, wire.ErrProtocol, "not a socket"},
		{"file", "rm " + socket + " && echo > " + socket, wire.ErrProtocol, "not a socket"},
		{"directory", "rm " + socket + " && mkdir " + socket, wire.ErrProtocol, "not a socket"},
		{"nothing", "rm " + socket, context.DeadlineExceeded, "guest does not listen"},
	}
	onEach(t, func(t *testing.T, l *lab) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				i := l.start(t)
				sh(t, i, c.attack)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				conn, err := i.Dial(ctx)
				if err == nil {
					conn.Close()
					t.Fatal("dialled all the same")
				}
				if c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.message) {
					t.Errorf("got %v, want %v with %q", err, c.want, c.message)
				}
				if errors.Is(c.want, sandbox.ErrDenied) && errhint.Of(err) == "" {
					t.Error("no hint")
				}
				// What is left in the directory does not spoil the next life.
				if err := i.Kill(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := i.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := sh(t, i, "echo back"); got != "back" {
					t.Errorf("after a new start: %q", got)
				}
			})
		}
	})
}

func TestDialAfterARestartElsewhere(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		i := l.start(t)
		again, err := l.Open(t.Context(), i.name)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := again.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		// i still holds the process id of the first life.
		if got := sh(t, i, "echo new life"); got != "new life" {
			t.Errorf("got %q", got)
		}
	})
}

func TestDialWhatDoesNotRun(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		i := l.start(t)
		if err := i.Stop(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := i.Dial(t.Context())
		if !errors.Is(err, sandbox.ErrNotRunning) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > dialTimeout/2 {
			t.Errorf("took %v to notice", took)
		}
	})
}

func TestGuestThatDiesTellsWhy(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		made, err := l.Create(t.Context(), l.spec())
		if err != nil {
			t.Fatal(err)
		}
		i := made.(*Instance)
		// The sandbox's user may not write here any more: the probe cannot listen.
		if err := os.Chown(i.wire, 0, 0); err != nil {
			t.Fatal(err)
		}
		err = i.Start(t.Context())
		if err == nil {
			_, err = i.Dial(t.Context())
		}
		if !errors.Is(err, sandbox.ErrNotRunning) || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("got %v, want the probe's own words", err)
		}
	})
}

// State directories can be deeper than a socket's address is long.
func TestLongStateDirectory(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		deep := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100))
		l = newLab(t, l.options.Host, l.options.Flavor, func(o *Options) { o.StateDir = deep })
		if got := sh(t, l.start(t), "echo far"); got != "far" {
			t.Errorf("got %q", got)
		}
	})
}

func TestWireDirectoryIsPrivate(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		i := l.start(t)
		parent, err := os.Stat(filepath.Dir(i.wire))
		if err != nil || parent.Mode().Perm() != 0o700 {
			t.Errorf("parent: %v, %v", parent.Mode(), err)
		}
		if got := sh(t, i, "stat -c '%u:%g %a' /.atoll/wire"); got != "1234:1234 700" {
			t.Errorf("wire directory inside: %s", got)
		}
		named := l.start(t, func(s *sandbox.Spec) { s.User = "daemon-nobody-knows" }, func(s *sandbox.Spec) { s.User = "" })
		if got := sh(t, named, "stat -c %a /.atoll/wire"); got != "700" {
			t.Errorf("wire directory of the image's user: %s", got)
		}
	})
}
