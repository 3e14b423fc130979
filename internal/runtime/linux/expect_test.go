package linux_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/runtime/linux"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// children are the processes that this one has started and that have not ended.
func children(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(files) == 0 {
		t.Fatal("the kernel does not tell of children", err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for field := range strings.FieldsSeq(string(text)) {
			pid, _ := strconv.Atoi(field)
			pids = append(pids, pid)
		}
	}
	return pids
}

// awaitChild is the process that was not there before.
func awaitChild(t *testing.T, before []int) int {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, pid := range children(t) {
			if !slices.Contains(before, pid) {
				return pid
			}
		}
	}
	t.Fatal("no process was begun")
	return 0
}

func (l *site) firstProcess(name string) int {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.state, "linux", name, "record.json"))
	if err != nil {
		l.t.Fatal(err)
	}
	var record struct{ Life struct{ PID int } }
	if err := json.Unmarshal(text, &record); err != nil {
		l.t.Fatal(err)
	}
	return record.Life.PID
}

// A process that was begun early becomes the sandbox it was begun for, once, and
// says what it has to say in that sandbox's log.
func TestExpected(t *testing.T) {
	l := newSite(t)
	l.start() // so that there is a place for logs
	before := children(t)
	spec := l.spec()
	done := l.Runtime.(*linux.Runtime).Expect(spec)
	early := awaitChild(t, before)
	i, err := l.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	done()
	if first := l.firstProcess(spec.Name); first != early {
		t.Errorf("the sandbox is process %d, begun was %d", first, early)
	}
	if out := l.sh(i, "echo alive"); out != "alive" {
		t.Errorf("it says %q", out)
	}
	if _, err := os.Stat(filepath.Join(l.state, "linux", spec.Name, "log")); err != nil {
		t.Error(err)
	}
	if err := i.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.Start(t.Context()); err != nil {
		t.Fatal("again:", err)
	}
}

// A process that was begun for nothing, or for another user, is gone afterwards.
func TestExpectedForNothing(t *testing.T) {
	l := newSite(t)
	l.start()
	runtime := l.Runtime.(*linux.Runtime)
	for name, use := range map[string]func(*sandbox.Spec){
		"nobody came": func(*sandbox.Spec) {},
		"another user": func(s *sandbox.Spec) {
			other := *s
			other.User = "4711:4711"
			i, err := l.Create(t.Context(), &other)
			if err != nil {
				t.Fatal(err)
			}
			if err := i.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if out := l.sh(i, "id -u"); out != "4711" {
				t.Errorf("the user is %s", out)
			}
			if err := i.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"expected twice": func(s *sandbox.Spec) { runtime.Expect(s)() },
	} {
		before := children(t)
		spec := l.spec()
		done := runtime.Expect(spec)
		early := awaitChild(t, before)
		use(spec)
		done()
		if slices.Contains(children(t), early) {
			t.Errorf("%s: process %d is left", name, early)
		}
	}
	left, err := os.ReadDir(filepath.Join(l.state, "linux"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if !strings.HasPrefix(entry.Name(), "atoll-test-") && entry.Name() != ".proven" {
			t.Errorf("%s is left", entry.Name())
		}
	}
}
