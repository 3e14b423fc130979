package spawn_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/guest/spawn"
	"golang.org/x/sys/unix"
)

// null is the standard streams of a process that needs none.
func null(tb testing.TB) [3]int {
	tb.Helper()
	file, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = file.Close() })
	fd := int(file.Fd())
	return [3]int{fd, fd, fd}
}

func wait(tb testing.TB, pid int) syscall.WaitStatus {
	tb.Helper()
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		tb.Fatal(err)
	}
	return status
}

// run starts a process with its output on a pipe and returns output and status.
func run(t *testing.T, attr *spawn.Attr) (string, syscall.WaitStatus) {
	t.Helper()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	r := os.NewFile(uintptr(pipe[0]), "r")
	defer r.Close()
	attr.Files = null(t)
	attr.Files[1] = pipe[1]
	child, err := spawn.Begin(attr)
	unix.Close(pipe[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Await(); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), wait(t, child.PID)
}

func TestProcessIsSetUp(t *testing.T) {
	dir := t.TempDir()
	script := `pwd; echo "$GREETING"; ls /proc/self/fd | wc -l
		grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '0\n'; echo
		grep 'Max file locks' /proc/self/limits | tr -s ' '
		ps -o sid= -p $$ | grep -qw $$ && echo leads a session
		exit 7`
	out, status := run(t, &spawn.Attr{
		Path: "/bin/sh", Argv: []string{"a name", "-c", script}, Dir: dir,
		Env:    []string{"GREETING=hello", "PATH=/usr/bin:/bin"},
		Limits: []spawn.Limit{{Resource: unix.RLIMIT_LOCKS, Soft: 123, Hard: 456}},
	})
	want := dir + "\nhello\n4\nSigBlk:\tSigIgn:\t\nMax file locks 123 456 locks \nleads a session\n"
	if out != want || status.ExitStatus() != 7 {
		t.Errorf("%q, status %d; want %q", out, status.ExitStatus(), want)
	}
}

func TestFailureTellsTheStage(t *testing.T) {
	files := null(t)
	tests := []struct {
		name string
		attr spawn.Attr
		want spawn.Error
	}{
		{"missing program", spawn.Attr{Path: "/no/such", Files: files}, spawn.Error{Stage: spawn.StageExec, Errno: syscall.ENOENT}},
		{"not executable", spawn.Attr{Path: "/etc/passwd", Files: files}, spawn.Error{Stage: spawn.StageExec, Errno: syscall.EACCES}},
		{"zero byte", spawn.Attr{Path: "/bin/\x00", Files: files}, spawn.Error{Stage: spawn.StageExec, Errno: syscall.EINVAL}},
		{"missing directory", spawn.Attr{Path: "/bin/true", Dir: "/no/such", Files: files}, spawn.Error{Stage: spawn.StageDir, Errno: syscall.ENOENT}},
		{"bad descriptor", spawn.Attr{Path: "/bin/true", Files: [3]int{files[0], 9999, files[0]}}, spawn.Error{Stage: spawn.StageFiles, Errno: syscall.EBADF}},
		{"bad limit", spawn.Attr{Path: "/bin/true", Files: files, Limits: []spawn.Limit{{Resource: unix.RLIMIT_LOCKS, Soft: 2, Hard: 1}}}, spawn.Error{Stage: spawn.StageLimit, Errno: syscall.EINVAL}},
		{"no terminal", spawn.Attr{Path: "/bin/true", Files: files, TTY: true}, spawn.Error{Stage: spawn.StageTTY, Errno: syscall.ENOTTY}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.attr.Argv = []string{"x"}
			child, err := spawn.Begin(&tt.attr)
			if err == nil {
				err = child.Await()
				wait(t, child.PID)
			}
			got, ok := errors.AsType[*spawn.Error](err)
			if !ok || *got != tt.want {
				t.Errorf("got %v, want %v", err, &tt.want)
			}
		})
	}
}

// TestManyAtOnce starts processes on all threads while the collector works.
func TestManyAtOnce(t *testing.T) {
	files := null(t)
	done := make(chan error)
	for range 8 {
		go func() {
			var failed error
			for range 100 {
				child, err := spawn.Begin(&spawn.Attr{Path: "/bin/sh", Argv: []string{"sh", "-c", `[ "$A" = yes ]`, strings.Repeat("x", 10_000)}, Env: []string{"A=yes"}, Files: files})
				if err == nil {
					err = child.Await()
				}
				var status syscall.WaitStatus
				if err == nil {
					_, err = syscall.Wait4(child.PID, &status, 0, nil)
				}
				if err != nil || status != 0 {
					failed = errors.Join(failed, err, errors.New(strings.Repeat("!", int(status))))
				}
			}
			done <- failed
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	files := null(b)
	for b.Loop() {
		child, err := spawn.Begin(&spawn.Attr{Path: "/bin/true", Argv: []string{"true"}, Files: files})
		if err != nil {
			b.Fatal(err)
		}
		if err := child.Await(); err != nil {
			b.Fatal(err)
		}
		wait(b, child.PID)
	}
}

func BenchmarkStandardLibrary(b *testing.B) {
	files := null(b)
	fd := uintptr(files[0])
	for b.Loop() {
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Files: []uintptr{fd, fd, fd}})
		if err != nil {
			b.Fatal(err)
		}
		wait(b, pid)
	}
}
