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

// run starts argv with its output on a pipe and returns output and status.
func run(t *testing.T, attr *spawn.Attr) (string, syscall.WaitStatus) {
	t.Helper()
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	r := os.NewFile(uintptr(pipe[0]), "r")
	defer r.Close()
	attr.Files = [3]int{int(null.Fd()), pipe[1], pipe[1]}
	pid, err := spawn.Start(attr)
	unix.Close(pipe[1])
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		t.Fatal(err)
	}
	return string(out), status
}

func TestStartSetsUpTheProcess(t *testing.T) {
	dir := t.TempDir()
	out, status := run(t, &spawn.Attr{
		Path: "/bin/sh",
		Argv: []string{"sh", "-c", `pwd; echo "$GREETING"; ulimit -Hx; ls -l /proc/self/fd | wc -l; ps -o sid= -p $$; echo $$; exit 7`},
		Env:  []string{"GREETING=hello", "PATH=/usr/bin:/bin"}, Dir: dir,
		Limits: []spawn.Limit{{Resource: 10, Soft: 123, Hard: 123}},
	})
	got := strings.Fields(out)
	if len(got) < 3 || got[0] != dir || got[1] != "hello" {
		t.Fatalf("output %q, status %v", out, status)
	}
	if status.ExitStatus() != 7 {
		t.Errorf("exit status %d, want 7", status.ExitStatus())
	}
	t.Log(out)
}

func TestStartReportsTheStage(t *testing.T) {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	fd := int(null.Fd())
	files := [3]int{fd, fd, fd}
	tests := []struct {
		name string
		attr spawn.Attr
		want spawn.Error
	}{
		{"missing program", spawn.Attr{Path: "/no/such", Files: files}, spawn.Error{spawn.StageExec, syscall.ENOENT}},
		{"not executable", spawn.Attr{Path: "/etc/passwd", Files: files}, spawn.Error{spawn.StageExec, syscall.EACCES}},
		{"missing directory", spawn.Attr{Path: "/bin/true", Dir: "/no/such", Files: files}, spawn.Error{spawn.StageDir, syscall.ENOENT}},
		{"bad descriptor", spawn.Attr{Path: "/bin/true", Files: [3]int{fd, 9999, fd}}, spawn.Error{spawn.StageFiles, syscall.EBADF}},
		{"no terminal", spawn.Attr{Path: "/bin/true", Files: files, TTY: true}, spawn.Error{spawn.StageTTY, syscall.ENOTTY}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.attr.Argv = []string{"x"}
			_, err := spawn.Start(&tt.attr)
			got, ok := errors.AsType[*spawn.Error](err)
			if !ok || *got != tt.want {
				t.Errorf("got %v, want %v", err, &tt.want)
			}
		})
	}
}

func BenchmarkStart(b *testing.B) {
	null, _ := os.OpenFile("/dev/null", os.O_RDWR, 0)
	defer null.Close()
	fd := int(null.Fd())
	for b.Loop() {
		pid, err := spawn.Start(&spawn.Attr{Path: "/bin/true", Argv: []string{"true"}, Files: [3]int{fd, fd, fd}})
		if err != nil {
			b.Fatal(err)
		}
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStandardLibrary(b *testing.B) {
	null, _ := os.OpenFile("/dev/null", os.O_RDWR, 0)
	defer null.Close()
	fd := null.Fd()
	for b.Loop() {
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Files: []uintptr{fd, fd, fd}})
		if err != nil {
			b.Fatal(err)
		}
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			b.Fatal(err)
		}
	}
}
