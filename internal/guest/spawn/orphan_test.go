package spawn_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/guest/spawn"
	"golang.org/x/sys/unix"
)

// parentVariable makes this program start a process, print its pid, and never write to
// its WaitFD.
const parentVariable = "ATOLL_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) != "" {
		startAndWait()
	}
	os.Exit(m.Run())
}

func startAndWait() {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	gate := aloft(ends[1])
	unix.Close(ends[1])
	child, err := spawn.Begin(&spawn.Attr{
		Path: "/bin/true", Argv: []string{"true"}, Files: [3]int{aloft(0), aloft(1), aloft(2)}, Isolation: spawn.Isolation{WaitFD: gate},
	})
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stdout, child.PID)
	for { // a Go program that waits for nothing at all ends itself
		time.Sleep(time.Hour)
	}
}

// aloft returns a copy of a descriptor with a number that no child gets.
func aloft(fd int) int {
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 32)
	if err != nil {
		panic(err)
	}
	return fd
}

// A process that waits for its WaitFD ends with its parent, also if that is killed: it has
// no descriptor of its parent, neither the other end of WaitFD nor locks.
func TestWaitFDOfAnOrphan(t *testing.T) {
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"=1")
	held, err := os.CreateTemp(t.TempDir(), "held")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	parent.ExtraFiles = []*os.File{held}
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	eventually(t, "it has only what it was given", func() bool {
		entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
		return err == nil && len(entries) == 4 // its streams, and the gate
	})
	_ = parent.Process.Kill()
	_ = parent.Wait()
	eventually(t, "it ends", func() bool {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err != nil || strings.Contains(string(state), ") Z ")
	})
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
