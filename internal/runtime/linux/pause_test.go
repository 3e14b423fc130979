package linux_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// beating is a sandbox with a process that counts, and others that start others
// all the time; beats reads the count.
func beating(l *site) (i sandbox.Instance, beats func() int) {
	l.t.Helper()
	work := l.dir("work")
	i = l.start(func(s *sandbox.Spec) { s.Mounts = []sandbox.Mount{{Source: work, Target: "/work"}} })
	l.sh(i, `(n=0; while :; do n=$((n+1)); echo $n >/work/.n; mv /work/.n /work/n; done) >/dev/null 2>&1 </dev/null &
		(while :; do /bin/true; done) >/dev/null 2>&1 </dev/null &`)
	return i, func() int {
		text, _ := os.ReadFile(filepath.Join(work, "n"))
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
}

// goesOn waits until the count has changed.
func (l *site) goesOn(beats func() int) {
	l.t.Helper()
	before := beats()
	for deadline := time.Now().Add(time.Minute); beats() <= before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatal("nothing moves inside")
		}
	}
}

func (l *site) wantState(i sandbox.Instance, want sandbox.State) {
	l.t.Helper()
	if state, err := i.State(l.t.Context()); err != nil || state != want {
		l.t.Fatalf("it is %s (%v), want %s", state, err, want)
	}
}

// pause pauses a sandbox, and leaves the test out if this user cannot.
func pause(t *testing.T, i sandbox.Instance) {
	t.Helper()
	err := i.(sandbox.Pauser).Pause(t.Context())
	if errors.Is(err, sandbox.ErrUnsupported) {
		need.Missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Every process of a paused sandbox stays where it is, whoever looks, until it
// is resumed; then all go on.
func TestPause(t *testing.T) {
	l := newSite(t)
	i, beats := beating(l)
	l.goesOn(beats)
	for range 2 { // the second pause finds the group of the first
		pause(t, i)
		l.wantState(i, sandbox.StatePaused)
		before := beats()
		time.Sleep(200 * time.Millisecond) // in which it would count by hundreds
		if after := beats(); after != before {
			t.Errorf("a paused sandbox counted from %d to %d", before, after)
		}
		other, err := open(t, l.state).Open(t.Context(), i.Seen().Name)
		if err != nil {
			t.Fatal(err)
		}
		l.wantState(other, sandbox.StatePaused)
		if err := other.(sandbox.Resumer).Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.wantState(i, sandbox.StateRunning)
		l.goesOn(beats)
		if out := l.sh(i, "echo answers"); out != "answers" {
			t.Errorf("it says %q", out)
		}
	}
}

// A paused sandbox can be ended, and nothing of it stays.
func TestEndOfAPausedSandbox(t *testing.T) {
	for name, end := range map[string]func(*testing.T, sandbox.Instance) error{
		"stop":   func(t *testing.T, i sandbox.Instance) error { return i.Stop(t.Context(), time.Minute) },
		"kill":   func(t *testing.T, i sandbox.Instance) error { return i.Kill(t.Context()) },
		"remove": func(t *testing.T, i sandbox.Instance) error { return i.Remove(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newSite(t)
			i, beats := beating(l)
			l.goesOn(beats)
			pause(t, i)
			if err := end(t, i); err != nil {
				t.Fatal(err)
			}
			if name != "remove" {
				l.wantState(i, sandbox.StateStopped)
				if err := i.Remove(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			left, err := filepath.Glob("/sys/fs/cgroup/*/atoll/" + i.Seen().ID)
			if err != nil || len(left) > 0 {
				t.Errorf("groups are left: %v, %v", left, err)
			}
		})
	}
}

func TestPauseOfWhatDoesNotRun(t *testing.T) {
	l := newSite(t)
	i := l.start()
	if err := i.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.(sandbox.Pauser).Pause(t.Context()); !errors.Is(err, sandbox.ErrNotRunning) {
		t.Errorf("%v, want %v", err, sandbox.ErrNotRunning)
	}
}

// An ordinary user to whom the freezer was delegated pauses as root does.
func TestUserPause(t *testing.T) {
	asSomeone(t, "TestPause", "^TestPause$", delegate(t, "freezer"))
}

// One who has no control group is told what it takes, and his sandbox runs on.
func TestUserPauseWithoutGroups(t *testing.T) {
	asSomeone(t, "TestPauseIsRefused", "^TestPauseIsRefused$", nil)
}

func TestPauseIsRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		return // TestUserPauseWithoutGroups runs it
	}
	l := newSite(t)
	i := l.start()
	err := i.(sandbox.Pauser).Pause(t.Context())
	if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(errhint.Of(err), "control group") {
		t.Errorf("%v (%s), want it refused with a hint", err, errhint.Of(err))
	}
	l.wantState(i, sandbox.StateRunning)
	l.sh(i, "true")
}
