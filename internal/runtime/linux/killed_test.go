package linux_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/runtime/linux"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
)

// victimVariable tells a process that a test started where to work until it is
// killed.
const victimVariable = "ATOLL_TEST_VICTIM"

// victims are killed at moments spread over the life of a sandbox and its fork.
const victims = 8

// A process that makes, starts, stops, forks and removes sandboxes is killed
// somewhere in the middle. The next one finds every sandbox that was complete,
// and afterwards nothing is left of any: no process, no control group, no
// directory, no pin, no layer.
func TestKilledAnywhere(t *testing.T) {
	grouptest.Need(t)
	if state := os.Getenv(victimVariable); state != "" {
		t.Fatal(beVictim(t, state))
	}
	l := newSite(t)
	begun := time.Now()
	if err := live(t.Context(), l.Runtime.(*linux.Runtime), l.state); err != nil {
		t.Fatal(err)
	}
	span := time.Since(begun)
	for range victims {
		ids := killOne(t, l.state, rand.N(span))
		for _, name := range []string{"one", "two"} {
			l.comeAfter(name)
		}
		l.nothingLeft(ids)
		if t.Failed() {
			return
		}
	}
}

// deaf is a store that cannot be reached when a pin is to be let go.
type deaf struct{ *rootfs.Store }

func (deaf) Unpin(string) error { return errors.New("killed here") }

// A removal that ends in the middle is finished by whoever comes next, who knows
// nothing but the name.
func TestRemovalThatDidNotFinish(t *testing.T) {
	grouptest.Need(t)
	l := newSite(t)
	roots, err := rootfs.Open(filepath.Join(l.state, "images"), rootfs.Options{Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	dying, err := linux.New(linux.Options{StateDir: l.state, Installation: "suite-" + filepath.Base(l.state), Roots: deaf{roots},
		Guest: func(string) (*guestbin.Guest, error) { return guestOf(guestProgram(t)) }})
	if err != nil {
		t.Fatal(err)
	}
	for again, next := range map[string]func(name string){
		"it is swept": l.comeAfter,
		"it is made anew": func(name string) {
			if _, err := l.Create(t.Context(), victimSpec(name)); err != nil {
				t.Error(err)
			}
			l.comeAfter(name)
		},
	} {
		i, err := l.Create(t.Context(), victimSpec("one"))
		if err == nil {
			err = i.Start(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		half, err := dying.Open(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		if err := half.Remove(t.Context()); err == nil || !strings.Contains(err.Error(), "killed here") {
			t.Fatalf("%s: removal: %v", again, err)
		}
		if _, err := l.Open(t.Context(), "one"); !errors.Is(err, sandbox.ErrNotFound) {
			t.Errorf("%s: half a sandbox is there: %v", again, err)
		}
		next("one")
		l.nothingLeft([]string{i.Seen().ID})
	}
}

// A creation is pinned before it has a record.
func TestPinOfACreationThatDidNotFinish(t *testing.T) {
	l := newSite(t)
	roots, err := rootfs.Open(filepath.Join(l.state, "images"), rootfs.Options{Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	_, pin, err := roots.Resolve(t.Context(), rootfs.HostName, rootfs.Identity{})
	if err == nil {
		err = errors.Join(pin.Keep("one"), os.MkdirAll(filepath.Join(l.state, "linux", "one"), 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	pin.Release()
	l.comeAfter("one")
	l.nothingLeft(nil)
}

// beVictim goes through all that can happen to a sandbox, again and again.
func beVictim(t *testing.T, state string) error {
	runtime := open(t, state).(*linux.Runtime)
	for {
		if err := live(t.Context(), runtime, state); err != nil {
			return err
		}
	}
}

func live(ctx context.Context, runtime *linux.Runtime, state string) error {
	one, two := victimSpec("one"), victimSpec("two")
	first, err := runtime.Create(ctx, one)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "id", first.Seen().ID)
	if err := errors.Join(first.Start(ctx), first.Stop(ctx, time.Second)); err != nil {
		return err
	}
	changed := filepath.Join(state, "linux", one.Name, "changes", "upper", "file") // becomes a layer
	if err := os.WriteFile(changed, nil, 0o600); err != nil {
		return err
	}
	second, err := runtime.Fork(ctx, one.Name, two)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "id", second.Seen().ID)
	return errors.Join(second.Start(ctx), first.Remove(ctx), second.Remove(ctx))
}

func victimSpec(name string) *sandbox.Spec {
	return &sandbox.Spec{Name: name, ScopeKey: "agent:test", AgentID: "test", ConfigHash: "hash", Image: rootfs.HostName, Workdir: "/",
		Network: "none", CapDrop: []string{"ALL"}, Limits: sandbox.Limits{Pids: 50}}
}

// killOne lets a process work for a moment, and returns what it said its
// sandboxes were.
func killOne(t *testing.T, state string, moment time.Duration) (ids []string) {
	t.Helper()
	guestProgram(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledAnywhere$")
	cmd.Env = append(os.Environ(), victimVariable+"="+state)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if id, ok := strings.CutPrefix(lines.Text(), "id "); ok {
			if ids = append(ids, id); len(ids) == 1 { // it is at work
				time.AfterFunc(moment, func() { _ = cmd.Process.Kill() })
			}
		}
	}
	if err := cmd.Wait(); len(ids) == 0 || cmd.ProcessState.Exited() {
		t.Fatalf("it was not killed at work: %v\n%s", err, strings.Join(said, "\n"))
	}
	return ids
}

// comeAfter does what the Manager does for a name in its books.
func (l *site) comeAfter(name string) {
	l.t.Helper()
	i, err := l.Open(l.t.Context(), name)
	if errors.Is(err, sandbox.ErrNotFound) {
		if err := l.Runtime.(sandbox.Sweeper).Sweep(l.t.Context(), name); err != nil {
			l.t.Error(err)
		}
		return
	}
	if err == nil {
		err = errors.Join(i.Start(l.t.Context()), i.Remove(l.t.Context())) // a whole one works
	}
	if err != nil {
		l.t.Errorf("%s: %v", name, err)
	}
}

func (l *site) nothingLeft(ids []string) {
	l.t.Helper()
	roots, err := rootfs.Open(filepath.Join(l.state, "images"), rootfs.Options{})
	if err == nil {
		_, err = roots.Collect(l.t.Context(), nil)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	for _, pattern := range []string{"linux/[^.]*", "images/pins/*", "images/tmp/*", "images/layers/*"} {
		if left, _ := filepath.Glob(filepath.Join(l.state, pattern)); len(left) > 0 {
			l.t.Errorf("left: %v", left)
		}
	}
	for _, id := range ids {
		for _, pattern := range []string{"/sys/fs/cgroup/*/atoll/", "/sys/fs/cgroup/atoll/", "/sys/fs/cgroup/*/*/atoll/", "/sys/fs/cgroup/*/*/*/atoll/"} {
			if left, _ := filepath.Glob(pattern + id); len(left) > 0 {
				l.t.Errorf("control groups left: %v", left)
			}
		}
	}
	mounts, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, path := range mounts {
		if text, _ := os.ReadFile(path); strings.Contains(string(text), l.state+"/") {
			l.t.Errorf("a process is left: %s", path)
		}
	}
}
