package proc

import (
	"bufio"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A guest that is not alone leaves the processes of others alone, also when they
// have the marks of its own: those in sandboxes of the same machine do.
func TestWardenTouchesOnlyItsOwn(t *testing.T) {
	l, err := NewLineage()
	if err != nil {
		t.Fatal(err)
	}
	list, err := NewList()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(list.proc)
	w := &Walker{lineage: l, reaper: NewReaper(l), Procs: list}
	m := Mark(marks - 77) // that no guest has come to
	limits := l.Limits(m)
	marked := fmt.Sprintf("prlimit --locks=%d:%[1]d --rttime=%d:%[2]d sleep 1000", limits[0].Hard, limits[1].Hard)

	own := exec.Command("sh", "-c", "exec "+marked)
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Process.Kill(); _ = own.Wait() }()
	foreign := orphan(t, marked)
	defer func() { _ = unix.Kill(foreign, unix.SIGKILL) }()
	for _, pid := range []int{own.Process.Pid, foreign} {
		for lowest, _, _ := l.MarksOf(pid); lowest != m; lowest, _, _ = l.MarksOf(pid) {
			// prlimit is about to set them
		}
	}

	if found := w.signal(OneExec(m), 0); found != 1 {
		t.Errorf("a guest among others found %d processes, and 1 is its own", found)
	}
	w.alone = true
	if found := w.signal(OneExec(m), 0); found != 2 {
		t.Errorf("a guest that is alone found %d processes of 2", found)
	}
}

// orphan starts a command whose parents are gone, so that it does not descend
// from the test, and returns its number.
func orphan(t *testing.T, command string) int {
	t.Helper()
	cmd := exec.Command("sh", "-c", "(setsid sh -c 'echo $$; exec "+command+"' 2>/dev/null &)")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
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
	// Its output stays open, so Wait would not end; the shell itself has.
	_, _ = cmd.Process.Wait()
	_ = out.Close()
	return pid
}
