package docker

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

func TestEngineRestart(t *testing.T) {
	for _, live := range []bool{false, true} {
		t.Run(map[bool]string{false: "containers end", true: "containers live on"}[live], func(t *testing.T) {
			own := enginetest.PrivateDocker(t, enginetest.Options{LiveRestore: live})
			l := newLab(t, own.Host(), Docker)
			i := l.start(t)
			conn, err := i.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := own.Stop(); err != nil {
				t.Fatal(err)
			}
			if _, err := i.State(t.Context()); !errors.Is(err, sandbox.ErrUnavailable) {
				t.Errorf("without an engine: %v", err)
			}
			if err := own.StartAgain(); err != nil {
				t.Fatal(err)
			}
			found, err := l.Open(t.Context(), i.name)
			if err != nil {
				t.Fatal(err)
			}
			if !live {
				mustBe(t, found, sandbox.StateStopped)
				if err := found.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else if got := talk(t, conn, map[string]any{"argv": []string{"/bin/echo", "same"}}); got.Output != "same\n" {
				t.Errorf("the old wire says %q", got.Output)
			}
			if got := sh(t, found, "echo back"); got != "back" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// The engine dies while it makes a container. The caller learns that it is not
// there; what was made is found by name and label when it is back.
func TestEngineDiesInTheMiddleOfCreate(t *testing.T) {
	own := enginetest.PrivateDocker(t, enginetest.Options{})
	direct := newLab(t, own.Host(), Docker)
	tp := newTap(t, own.Host())
	l := newLab(t, tp.host, Docker, func(o *Options) { o.Installation, o.StateDir = direct.options.Installation, direct.options.StateDir })
	tp.set(func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.HasSuffix(req.URL.Path, "/containers/create") {
			return false
		}
		forwardAnyway(t, direct, req)
		if err := own.Kill(); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler) // the connection breaks
	})
	spec := l.spec()
	_, err := l.Create(t.Context(), spec)
	if !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("create: %v", err)
	}
	if err := own.StartAgain(); err != nil {
		t.Fatal(err)
	}
	half, err := direct.Open(t.Context(), spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	mustBe(t, half, sandbox.StateCreated)
	if err := half.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left := mustList(t, direct); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestCallsInFlightWhenTheEngineGoes(t *testing.T) {
	own := enginetest.PrivateDocker(t, enginetest.Options{LiveRestore: true})
	direct := newLab(t, own.Host(), Docker)
	i := direct.start(t)
	tp := newTap(t, own.Host())
	l := newLab(t, tp.host, Docker, func(o *Options) { o.Installation, o.StateDir = direct.options.Installation, direct.options.StateDir })
	through, err := l.Open(t.Context(), i.name)
	if err != nil {
		t.Fatal(err)
	}
	tp.set(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
	for verb, call := range map[string]func(context.Context) error{
		"start": through.Start, "kill": through.Kill, "remove": through.Remove,
		"stop":  func(ctx context.Context) error { return through.Stop(ctx, time.Second) },
		"state": func(ctx context.Context) error { _, err := through.State(ctx); return err },
	} {
		if err := call(t.Context()); !errors.Is(err, sandbox.ErrUnavailable) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	mustBe(t, i, sandbox.StateRunning)
}

func TestPauseAndUsage(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		i := l.start(t, func(s *sandbox.Spec) { s.Limits.Memory = 64 << 20 })
		usage, err := i.Usage(t.Context())
		if err != nil || usage.Memory == 0 || usage.MemoryLimit != 64<<20 || usage.Pids == 0 || usage.CPU == 0 {
			t.Errorf("usage %+v, %v", usage, err)
		}
		for range 2 {
			if err := i.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustBe(t, i, sandbox.StatePaused)
		}
		for range 2 {
			if err := i.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustBe(t, i, sandbox.StateRunning)
		}
		if err := i.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := i.Start(t.Context()); err != nil { // a way to resume, too
			t.Fatal(err)
		}
		if got := sh(t, i, "echo awake"); got != "awake" {
			t.Errorf("got %q", got)
		}
		if err := i.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := i.Remove(t.Context()); err != nil {
			t.Errorf("removing what is paused: %v", err)
		}
		if err := i.Resume(t.Context()); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("resuming what is gone: %v", err)
		}
	})
}

func TestLogFloodIsBounded(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		i := l.start(t)
		tell(t, i, map[string]any{"flood": 20 << 20})
		found, err := l.inspect(t.Context(), i.id)
		if err != nil {
			t.Fatal(err)
		}
		if size := logSize(t, found.LogPath); size > 3<<20 {
			t.Errorf("log has %d bytes after a flood of 20 MiB", size)
		}
	})
}

// A sandbox that fills every temporary file system it has keeps its guest.
func TestFullTmpfsDoesNotEndTheGuest(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		i := l.start(t, func(s *sandbox.Spec) {
			s.Limits.Memory, s.Limits.MemorySwap = 96<<20, 96<<20
			s.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp"}, {Target: "/var/tmp"}, {Target: "/run"}}
		})
		sh(t, i, "for d in /tmp /var/tmp /run; do dd if=/dev/zero of=$d/fill bs=1M 2>/dev/null; done; true")
		if got := sh(t, i, "echo alive"); got != "alive" {
			t.Errorf("got %q", got)
		}
	})
}

// logSize waits until a log is there, which it is not at every moment while an
// engine makes room in it, and does not change any more.
func logSize(t *testing.T, path string) int64 {
	t.Helper()
	last := int64(-1)
	for range 100 {
		if info, err := os.Stat(path); err == nil && info.Size() > 0 {
			if info.Size() == last {
				return last
			}
			last = info.Size()
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("log %s is missing or keeps changing", path)
	return 0
}
