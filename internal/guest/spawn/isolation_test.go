package spawn_test

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/guest/spawn"
	"golang.org/x/sys/unix"
)

// A process waits for its WaitFD until its user is mapped; then it has the descriptors and
// the capabilities of its Attr, and no others.
func TestIsolation(t *testing.T) {
	gate, out := pipe(t), pipe(t)
	attr := &spawn.Attr{
		Path: "/bin/sh", Argv: []string{"sh", "-c", "id -u; echo $$; cat <&3; ls /proc/self/fd; grep CapAmb /proc/self/status"},
		Env: []string{"PATH=/usr/bin:/bin"}, Files: null(t),
		Isolation: spawn.Isolation{Namespaces: unix.CLONE_NEWUSER | unix.CLONE_NEWPID, WaitFD: int(above(t, gate[0]).Fd()), Ambient: []uintptr{unix.CAP_SYS_CHROOT}},
	}
	words, stdout := pipe(t), above(t, out[1])
	attr.Files[1], attr.Inherit = int(stdout.Fd()), []int{int(above(t, words[0]).Fd())}
	child, err := spawn.Begin(attr)
	if err != nil {
		t.Fatal(err)
	}
	proc := "/proc/" + strconv.Itoa(child.PID)
	if target, err := os.Readlink(proc + "/exe"); err != nil || strings.Contains(target, "sh") && strings.HasPrefix(target, "/bin") {
		t.Errorf("it runs %q before the gate opens, %v", target, err)
	}
	const somebody = 4711
	if err := os.WriteFile(proc+"/uid_map", []byte(strconv.Itoa(somebody)+" "+strconv.Itoa(os.Getuid())+" 1"), 0); err != nil {
		t.Fatal(err)
	}
	_, written := words[1].Write([]byte("inherited\n"))
	_, opened := gate[1].Write([]byte{0})
	if err := errors.Join(written, words[1].Close(), opened, child.Await()); err != nil {
		t.Fatal(err)
	}
	_, _ = out[1].Close(), stdout.Close()
	text, err := io.ReadAll(out[0])
	if status := wait(t, child.PID); err != nil || status.ExitStatus() != 0 {
		t.Fatal(status, err)
	}
	want := "4711\n1\ninherited\n0\n1\n2\n3\n"
	if got := string(text); !strings.HasPrefix(got, want) || !strings.Contains(got, "CapAmb:\t0000000000040000") {
		t.Errorf("it said %q", got)
	}
}

// A process enters its control groups before it runs its program, and runs none
// if it cannot.
func TestGroups(t *testing.T) {
	out := pipe(t)
	attr := &spawn.Attr{Path: "/bin/echo", Argv: []string{"echo", "ran"}, Files: null(t)}
	attr.Files[1], attr.Groups = int(above(t, out[1]).Fd()), []int{int(above(t, out[1]).Fd())}
	child, err := spawn.Begin(attr)
	if err = errors.Join(err, child.Await()); err != nil {
		t.Fatal(err)
	}
	wait(t, child.PID)
	text := make([]byte, 16)
	if n, err := out[0].Read(text); err != nil || string(text[:n]) != "0ran\n" {
		t.Errorf("%q, %v", text[:n], err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	attr.Groups = append(attr.Groups, int(above(t, full).Fd()))
	if child, err = spawn.Begin(attr); err != nil {
		t.Fatal(err)
	}
	var failed *spawn.Error
	if err := child.Await(); !errors.As(err, &failed) || failed.Stage != spawn.StageGroup || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a group that refuses: %v", err)
	}
	wait(t, child.PID)
	if n, err := out[0].Read(text); err != nil || string(text[:n]) != "0" {
		t.Errorf("it went on to %q, %v", text[:n], err)
	}
}

func pipe(t *testing.T) [2]*os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return [2]*os.File{r, w}
}

// above returns a copy of a descriptor with a number that no child gets.
func above(t *testing.T, file *os.File) *os.File {
	t.Helper()
	const first = 32
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, first)
	if err != nil {
		t.Fatal(err)
	}
	high := os.NewFile(uintptr(fd), file.Name())
	t.Cleanup(func() { _ = high.Close() })
	return high
}
