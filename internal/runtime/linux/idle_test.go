package linux_test

import (
	"errors"
	"fmt"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// idleWindow is how long an idle guest is observed.
	idleWindow = 5 * time.Second
	// mostWakeups is how often its threads may wake in that time. One that checks
	// its socket every second wakes at least 10 times.
	mostWakeups = 5
)

// TestIdleGuestSleeps checks that a guest without processes does not wake up,
// also where the user has no inotify instance left, and that it holds none: 128
// idle sandboxes would take all that the user outside has.
func TestIdleGuestSleeps(t *testing.T) {
	need.Time(t, "it watches an idle guest")
	l := newSite(t)
	program := filepath.Join(l.state, "guest")
	if err := os.WriteFile(program, guestProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, instances := range []string{"0", "8"} {
		dir := l.dir("wire" + instances)
		cmd := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
			`echo `+instances+` >/proc/sys/user/max_inotify_instances && exec "$@"`, "sh", program, "init", "--socket", filepath.Join(dir, "guest.sock"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		awaitSocket(t, filepath.Join(dir, "guest.sock"))
		awaitSleep(t, onlyChild(t, cmd.Process.Pid))
	}
}

// awaitSocket returns when there is a socket at path.
func awaitSocket(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(path); err == nil {
			return
		}
	}
	t.Fatal("there is no socket")
}

// awaitSleep returns when process pid woke at most mostWakeups times in a window.
// The first windows may hold what is left of its start.
func awaitSleep(t *testing.T, pid int) {
	t.Helper()
	var counts []int
	for range 4 {
		before := wakeups(t, pid)
		time.Sleep(idleWindow)
		counts = append(counts, wakeups(t, pid)-before)
		if counts[len(counts)-1] <= mostWakeups {
			wantNoInotify(t, pid)
			return
		}
	}
	t.Errorf("an idle guest woke %v times in windows of %v, want at most %d", counts, idleWindow, mostWakeups)
}

// wakeups returns how often the threads of a process have waited for something.
func wakeups(t *testing.T, pid int) int {
	t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(paths) == 0 {
		t.Fatalf("process %d has no threads: %v", pid, err)
	}
	sum := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		line, _, _ := strings.Cut(after, "\n")
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// wantNoInotify fails if a process holds an inotify instance.
func wantNoInotify(t *testing.T, pid int) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return // the guest hides its descriptors from users other than root
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if target, _ := os.Readlink(filepath.Join(dir, name.Name())); strings.Contains(target, "inotify") {
			t.Errorf("an idle guest holds descriptor %s: %s", name.Name(), target)
		}
	}
}

// onlyChild returns the process that pid has started.
func onlyChild(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return child
}
