package docker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

func TestLife(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		ctx := t.Context()
		spec := l.spec()
		made, err := l.Create(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		mustBe(t, made, sandbox.StateCreated)
		for step, want := range []struct {
			do   func(context.Context) error
			then sandbox.State
		}{
			{made.Start, sandbox.StateRunning},
			{made.Start, sandbox.StateRunning}, // again is nothing
			{func(ctx context.Context) error { return made.Stop(ctx, time.Second) }, sandbox.StateStopped},
			{func(ctx context.Context) error { return made.Stop(ctx, time.Second) }, sandbox.StateStopped},
			{made.Start, sandbox.StateRunning}, // a second life
			{made.Kill, sandbox.StateStopped},
			{made.Kill, sandbox.StateStopped},
		} {
			if err := want.do(ctx); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			mustBe(t, made, want.then)
			if want.then == sandbox.StateRunning {
				if got := run(t, made, "/bin/id", "-u"); got != "1234" {
					t.Errorf("uid is %s", got)
				}
			}
		}
		if err := made.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if got := run(t, made, "/bin/hostname"); got != spec.Name {
			t.Errorf("host name is %q, want %q", got, spec.Name)
		}
		for range 2 {
			if err := made.Remove(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Open(ctx, spec.Name); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("after removal: %v", err)
		}
		if _, err := os.Stat(wireDir(l.options.StateDir, spec.Name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("wire directory is left: %v", err)
		}
		for _, gone := range []func(context.Context) error{made.Kill, func(ctx context.Context) error { return made.Stop(ctx, 0) }} {
			if err := gone(ctx); err != nil {
				t.Errorf("ending what is gone: %v", err)
			}
		}
		if err := made.Start(ctx); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("starting what is gone: %v", err)
		}
	})
}

func mustBe(t *testing.T, i sandbox.Instance, want sandbox.State) {
	t.Helper()
	got, err := i.State(t.Context())
	if err != nil || got != want {
		t.Fatalf("state is %q (%v), want %q", got, err, want)
	}
	if seen := i.Seen().State; seen != want {
		t.Errorf("seen state is %q, want %q", seen, want)
	}
}

func TestStates(t *testing.T) {
	for status, want := range map[container.ContainerState]sandbox.State{
		"created": sandbox.StateCreated, "configured": sandbox.StateCreated, "initialized": sandbox.StateCreated,
		"running": sandbox.StateRunning, "restarting": sandbox.StateRunning, "stopping": sandbox.StateRunning,
		"paused": sandbox.StatePaused, "exited": sandbox.StateStopped, "stopped": sandbox.StateStopped,
		"dead": sandbox.StateDead, "removing": sandbox.StateDead, "": sandbox.StateDead, "something new": sandbox.StateDead,
	} {
		if got := stateOf(status); got != want {
			t.Errorf("%q is %q, want %q", status, got, want)
		}
	}
}

// TestRemovalIsAskedForAgain: an engine that could not kill a container in its own time is asked
// to remove it again, and not for ever.
func TestRemovalIsAskedForAgain(t *testing.T) {
	tp := newTap(t, enginetest.Docker(t))
	l := newLab(t, tp.host, Docker)
	i := l.start(t)
	for _, c := range []struct {
		refused, asked int
		message        string
		fails          bool
	}{
		{99, 1, "the device is full", true},
		{99, mostRemovals, "Could not kill running container, cannot remove - tried to kill container, but did not receive an exit event", true},
		{mostRemovals - 1, mostRemovals, "cannot remove container: could not kill container: no exit event", false},
	} {
		var asked atomic.Int32
		tp.set(func(w http.ResponseWriter, req *http.Request) bool {
			if req.Method != http.MethodDelete || int(asked.Add(1)) > c.refused {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprintf(w, `{"message": %q}`, c.message)
			return true
		})
		err := i.Remove(t.Context())
		if n := int(asked.Load()); n != c.asked || (err != nil) != c.fails {
			t.Errorf("%s: asked %d times, want %d; %v", c.message, n, c.asked, err)
		}
	}
	if _, err := l.Open(t.Context(), i.name); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("after the removal: %v", err)
	}
}
