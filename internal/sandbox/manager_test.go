package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// A sandbox that cannot be removed keeps its row, is told, and is tried again.
func TestPruneKeepsTheRowOfWhatItCouldNotRemove(t *testing.T) {
	y := newYard(t)
	m := y.manager()
	y.ensure(m, y.spec("stubborn")).Release()
	y.now.pass(2 * time.Hour)
	limits := func(string) sandbox.PruneLimits { return sandbox.PruneLimits{Idle: time.Hour} }
	y.runtime.removal = errors.New("the engine will not")
	for range 2 {
		done, err := m.Prune(t.Context(), limits)
		if err != nil || len(done) != 1 || !errors.Is(done[0].Err, y.runtime.removal) {
			t.Fatalf("prune: %+v, %v", done, err)
		}
		y.row(m, "stubborn")
	}
	y.runtime.removal = nil
	if done, err := m.Prune(t.Context(), limits); err != nil || len(done) != 1 || done[0].Err != nil {
		t.Fatalf("prune: %+v, %v", done, err)
	}
	if _, err := m.Registry.Get(t.Context(), "stubborn"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("the row stayed: %v", err)
	}
}

// Where one process prunes ahead, the others find that nothing is due.
func TestPruneAhead(t *testing.T) {
	y := newYard(t)
	m := y.manager()
	limits := func(string) sandbox.PruneLimits { return sandbox.PruneLimits{Idle: time.Second} }
	prune := func(what string, after time.Duration, with func(context.Context, func(string) sandbox.PruneLimits) ([]sandbox.Removal, error), want int) {
		t.Helper()
		y.ensure(m, y.spec("idle")).Release()
		y.now.pass(after)
		if done, err := with(t.Context(), limits); len(done) != want || err != nil {
			t.Errorf("%s: %d removals, %v, want %d", what, len(done), err, want)
		}
	}
	const half = sandbox.DefaultPruneInterval / 2
	prune("the first", time.Minute, m.PruneAhead, 1)
	prune("too early", half-time.Second, m.PruneAhead, 0)
	prune("due for others", time.Second, m.PruneIfDue, 0)
	prune("due", 2*time.Second, m.PruneAhead, 1)
	prune("soon after", sandbox.DefaultPruneInterval-time.Second, m.PruneIfDue, 0)
	prune("when nobody prunes ahead", 2*time.Second, m.PruneIfDue, 1)
}

// A sandbox whose files cannot be brought home is kept, can be used, and is removed when they
// can, or when they are of no use.
func TestRemovalLosesNoFiles(t *testing.T) {
	y := newYard(t)
	m := y.manager()
	for _, name := range []string{"kept", "discarded", "forced", "silent"} {
		y.ensure(m, y.spec(name)).Release()
	}
	y.now.pass(2 * time.Hour)
	limits := func(string) sandbox.PruneLimits { return sandbox.PruneLimits{Idle: time.Hour} }
	y.runtime.saving = fmt.Errorf("too large: %w", sandbox.ErrNotSaved)
	done, err := m.Prune(t.Context(), limits)
	if err != nil || len(done) != 4 || !errors.Is(done[0].Err, sandbox.ErrNotSaved) {
		t.Fatalf("prune: %+v, %v", done, err)
	}
	if err := m.Remove(t.Context(), "kept", nil); !errors.Is(err, sandbox.ErrNotSaved) {
		t.Errorf("remove: %v", err)
	}
	if h := y.ensure(m, y.spec("kept")); h.Created {
		t.Error("it was made anew")
	} else {
		works(t, h)
		h.Release()
	}
	if err := errors.Join(m.Save(t.Context(), "kept"), m.Save(t.Context(), "none")); !errors.Is(err, sandbox.ErrNotSaved) || errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("save: %v", err)
	}
	calls := y.runtime.saved
	if err := errors.Join(m.Discard(t.Context(), "discarded"), m.ForceRemove(t.Context(), "forced")); err != nil || y.runtime.saved != calls {
		t.Errorf("discard, force: %v, saved %d times", err, y.runtime.saved-calls)
	}
	y.runtime.saving = errors.New("it does not answer")
	if err := m.Remove(t.Context(), "silent", nil); err != nil {
		t.Errorf("one that does not answer: %v", err)
	}
	y.runtime.saving = nil
	if err := errors.Join(m.Save(t.Context(), "kept"), m.Remove(t.Context(), "kept", nil)); err != nil {
		t.Errorf("remove: %v", err)
	}
	if left, err := y.runtime.List(t.Context()); len(left) > 0 || err != nil {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// A sandbox whose removal failed is not used as if nothing had happened.
func TestWhatCouldNotBeRemovedIsReplacedByTheNextUse(t *testing.T) {
	y := newYard(t)
	m := y.manager()
	y.ensure(m, y.spec("half")).Release()
	y.runtime.removal = errors.New("the engine will not")
	if err := m.Remove(t.Context(), "half", nil); !errors.Is(err, y.runtime.removal) {
		t.Fatalf("remove: %v", err)
	}
	y.runtime.removal = nil
	if h := y.ensure(m, y.spec("half")); !h.Created {
		t.Error("it was used again")
	}
}

// A session is told why its sandbox was made anew, and the status says it before.
func TestTellsWhyItWasMadeAnew(t *testing.T) {
	y := newYard(t)
	y.ensure(y.manager(), y.spec("evicted")).Release()
	y.runtime.ended = "the cluster ended its pod"
	m := y.manager()
	if s, err := m.Status(t.Context(), "evicted"); err != nil || s.Problem != y.runtime.ended || s.LastSavedAtMs != 1000 {
		t.Errorf("%+v, %v", s, err)
	}
	h := y.ensure(m, y.spec("evicted"))
	defer h.Release()
	if !h.Created || len(h.Notices) != 1 || !strings.Contains(h.Notices[0], y.runtime.ended) {
		t.Errorf("made: %v, notices %q", h.Created, h.Notices)
	}
}

// A stopped sandbox that mounts something else when it is started again is ended
// before anybody works in it.
func TestMountsExchangedByAStart(t *testing.T) {
	y := newYard(t)
	m := y.manager()
	y.ensure(m, y.spec("stopped")).Release()
	if err := y.open("stopped").Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	y.runtime.exchanged = true
	if _, err := y.manager().Ensure(t.Context(), y.spec("stopped")); !errors.Is(err, sandbox.ErrDenied) {
		t.Errorf("%v, want ErrDenied", err)
	}
	if state, err := y.open("stopped").State(t.Context()); err != nil || state == sandbox.StateRunning {
		t.Errorf("it is %s, %v", state, err)
	}
	y.runtime.exchanged = false
	works(t, y.ensure(y.manager(), y.spec("stopped")))
}

// The time of use is written at most once in half a minute, by whichever process
// uses the sandbox, and also when a long use ends.
func TestTimeOfUse(t *testing.T) {
	y := newYard(t)
	m := y.manager()
	start := y.now.Now().UnixMilli()
	used := func() time.Duration {
		return time.Duration(y.row(m, "used").LastUsedAtMs-start) * time.Millisecond
	}
	y.ensure(m, y.spec("used")).Release()
	for _, step := range []struct {
		pass, want time.Duration
		who        *sandbox.Manager
	}{
		{10 * time.Second, 0, m},
		{10 * time.Second, 0, y.manager()},
		{10 * time.Second, 30 * time.Second, y.manager()},
		{20 * time.Second, 30 * time.Second, y.manager()},
		{20 * time.Second, 70 * time.Second, m},
	} {
		y.now.pass(step.pass)
		y.ensure(step.who, y.spec("used")).Release()
		if got := used(); got != step.want {
			t.Errorf("at %v: last use at %v, want %v", time.Duration(y.now.Now().UnixMilli()-start)*time.Millisecond, got, step.want)
		}
	}
	long := y.ensure(m, y.spec("used"))
	y.now.pass(time.Hour)
	long.Release()
	if got, want := used(), 70*time.Second+time.Hour; got != want {
		t.Errorf("after a long use: %v, want %v", got, want)
	}
}

// A clock that was ahead is set back: the sandbox is not hot until the old time
// comes again.
func TestClockSetBackEndsTheHotWindow(t *testing.T) {
	y := newYard(t)
	y.now.pass(1000 * time.Hour)
	y.ensure(y.manager(), y.spec("ahead")).Release()
	y.now.pass(-1000 * time.Hour)
	changed := y.spec("ahead")
	changed.ConfigHash = "hash-2"
	m := y.manager()
	if h := y.ensure(m, changed); h.Created {
		t.Error("recreated although it may just have been used")
	} else {
		h.Release()
	}
	if got := time.UnixMilli(y.row(m, "ahead").LastUsedAtMs); got.After(y.now.Now()) {
		t.Errorf("the last use is still at %v", got)
	}
	y.now.pass(sandbox.HotWindow)
	if h := y.ensure(m, changed); !h.Created {
		t.Error("still kept as just used")
	}
}

// One sandbox is being changed by another process for a long time: those who
// want another one, or give theirs back, do not wait for it.
func TestAChangeElsewhereHoldsUpNobodyElse(t *testing.T) {
	y := newYard(t)
	m := y.manager()
	y.ensure(m, y.spec("changing")).Release()
	other := y.ensure(m, y.spec("other"))
	book, err := filelock.Open(filepath.Join(y.state, "leases"))
	if err != nil {
		t.Fatal(err)
	}
	held, err := book.TryHold("use:changing")
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		h, err := m.Ensure(t.Context(), y.spec("changing"))
		if err == nil {
			h.Release()
		}
		waiting <- err
	}()
	time.Sleep(50 * time.Millisecond) // until it waits; if not, nothing is tested
	done := make(chan struct{})
	go func() {
		defer close(done)
		y.ensure(m, y.spec("other")).Release()
		other.Release()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("others wait, too")
	}
	select {
	case err := <-waiting:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	held.Release()
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}

// A guest that does not answer one caller in time is not taken away from
// another, who may be more patient.
func TestAnImpatientUserDoesNotEndAnother(t *testing.T) {
	y := newYard(t)
	m := y.manager()
	patient := y.ensure(m, y.spec("slow"))
	guest := y.guestOf(patient)
	answer := make(chan error, 1)
	go func() {
		_, err := patient.Machine.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", "sleep 0.5"}})
		answer <- err
	}()
	time.Sleep(100 * time.Millisecond)
	if err := syscall.Kill(guest, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitStopped(t, guest)
	m.WireTimeout = 200 * time.Millisecond
	_, err := m.Ensure(t.Context(), y.spec("slow"))
	if _, typed := errors.AsType[*sandbox.ProvisionError](err); !typed {
		t.Errorf("with a guest that is stopped: %v", err)
	}
	m.WireTimeout = sandbox.DefaultWireTimeout
	if err := syscall.Kill(guest, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-answer; err != nil {
		t.Errorf("the command of another user: %v", err)
	}
	works(t, patient)
	works(t, y.ensure(m, y.spec("slow")))
}

// awaitStopped waits until every thread of a process stands still: one that was
// running on another processor goes on for a moment.
func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	for range 500 {
		running := 0
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(threads) == 0 {
			t.Fatalf("process %d: %v, %d threads", pid, err, len(threads))
		}
		for _, file := range threads {
			stat, _ := os.ReadFile(file)
			if _, rest, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(rest, "T") {
				running++
			}
		}
		if running == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("process %d does not stop", pid)
}

// guestOf is the process id of a sandbox's guest on the host, where another run
// of the tests may have one of the same name.
func (y *yard) guestOf(h *sandbox.Handle) int {
	y.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		y.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		words := strings.Split(string(command), "\x00")
		if len(words) > 3 && words[1] == "init" && strings.HasPrefix(words[3], y.state+"/") && strings.Contains(words[3], "/"+h.Name+"/") {
			return pid
		}
	}
	y.t.Fatalf("no guest of %s", h.Name)
	return 0
}

// Locks that cannot be taken mean that nothing is changed.
func TestWithoutLocksNothingIsDone(t *testing.T) {
	y := newYard(t)
	m := y.manager()
	y.ensure(m, y.spec("there")).Release()
	changed := y.spec("there")
	changed.ConfigHash = "hash-2"
	y.now.pass(sandbox.HotWindow)
	before := y.open("there").Seen().ID
	if err := os.Remove(filepath.Join(y.state, "leases")); err != nil {
		t.Fatal(err)
	}
	_, err := m.Ensure(t.Context(), changed)
	if p, typed := errors.AsType[*sandbox.ProvisionError](err); !typed || p.Step != "lock" {
		t.Errorf("ensure: %v", err)
	}
	if err := m.Remove(t.Context(), "there", nil); err == nil {
		t.Error("removed")
	}
	if after := y.open("there").Seen().ID; after != before {
		t.Error("it was replaced")
	}
}

func (y *yard) open(name string) sandbox.Instance {
	y.t.Helper()
	inst, err := y.runtime.Open(y.t.Context(), name)
	if err != nil {
		y.t.Fatal(err)
	}
	return inst
}

// A sandbox that the registry lost is found again with everything that its row
// said.
func TestAdoptedRowIsComplete(t *testing.T) {
	for name, find := range map[string]func(*yard, *sandbox.Manager){
		"by the next use": func(y *yard, m *sandbox.Manager) { y.ensure(m, y.spec("lost")).Release() },
		"by prune": func(y *yard, m *sandbox.Manager) {
			if _, err := m.Prune(y.t.Context(), func(string) sandbox.PruneLimits { return sandbox.PruneLimits{} }); err != nil {
				y.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			m := y.manager()
			y.ensure(m, y.spec("lost")).Release()
			want := y.row(m, "lost")
			if err := m.Registry.Delete(t.Context(), "lost"); err != nil {
				t.Fatal(err)
			}
			next := y.manager()
			find(y, next)
			got := y.row(next, "lost")
			// The times are those of the runtime's own clock, and of the next use.
			got.CreatedAtMs, got.LastUsedAtMs = want.CreatedAtMs, want.LastUsedAtMs
			if *got != *want {
				t.Errorf("adopted as %+v\nwant %+v", got, want)
			}
		})
	}
}

// While somebody is in a sandbox that the registry lost, it is not replaced,
// although nothing says whether its set-up was finished: he found it so.
func TestLostWhileInUse(t *testing.T) {
	y := newYard(t)
	spec := y.spec("lost")
	spec.SetupCommand = "true"
	m := y.manager()
	user := y.ensure(m, spec)
	if err := m.Registry.Delete(t.Context(), "lost"); err != nil {
		t.Fatal(err)
	}
	if h := y.ensure(y.manager(), spec); h.Created {
		t.Error("it was made anew under its user")
	}
	works(t, user)
}

// An engine that takes calls and never answers keeps nobody from repairing what
// is on the others.
func TestRepairDoesNotWaitForAnEngineThatHangs(t *testing.T) {
	y := newYard(t)
	m := y.manager(func(o *sandbox.Options) {
		o.Backends = []string{"a-silent-one", "test"}
		o.Runtime = func(ctx context.Context, backend string) (sandbox.Runtime, error) {
			if backend == "test" {
				return y.runtime, nil
			}
			if _, limited := ctx.Deadline(); !limited {
				return nil, errors.New("asked without a limit")
			}
			return nil, context.DeadlineExceeded
		}
	})
	lost := y.spec("lost")
	lost.SetupCommand = "true"
	if _, err := y.runtime.Create(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	done, err := m.Repair(t.Context())
	if err != nil || len(done) != 1 || done[0].Err != nil {
		t.Errorf("repaired %+v, %v", done, err)
	}
}

// TestRaise: of processes that raise a number at once each gets another.
func TestRaise(t *testing.T) {
	y, numbers := newYard(t), make(chan uint64, 20)
	var all sync.WaitGroup
	for range 2 {
		registry := y.manager().Registry
		for range cap(numbers) / 2 {
			all.Go(func() {
				n, err := registry.Raise(t.Context(), "starts")
				if err != nil {
					t.Error(err)
				}
				numbers <- n
			})
		}
	}
	all.Wait()
	close(numbers)
	seen := map[uint64]bool{}
	for n := range numbers {
		seen[n] = true
	}
	if last, err := y.manager().Registry.Fact(t.Context(), "starts"); len(seen) != cap(numbers) || last != "20" || err != nil {
		t.Errorf("%v, %q, %v", seen, last, err)
	}
}
