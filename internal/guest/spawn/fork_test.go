package spawn

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestApart starts children as under an emulator, here without one.
func TestApart(t *testing.T) {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	start := func(path string) (int, *childProgram) {
		t.Helper()
		fd := int(null.Fd())
		s, err := newChildProgram(&Attr{Path: path, Argv: []string{"x", "-c", "exit 7"}, Files: [3]int{fd, fd, fd}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.release()
		pid, errno := s.runForked()
		if errno != 0 {
			t.Fatal(errno)
		}
		return pid, s
	}
	wait := func(pid int) int {
		t.Helper()
		var status unix.WaitStatus
		for {
			_, err := unix.Wait4(pid, &status, 0, nil)
			if !errors.Is(err, unix.EINTR) {
				return status.ExitStatus()
			}
		}
	}
	pid, s := start("/bin/sh")
	if code := wait(pid); s.status.stage != 0 || s.status.sharing != 0 || code != 7 {
		t.Errorf("stage %v, exit %d", Stage(s.status.stage), code)
	}
	pid, s = start("/no/such/program")
	wait(pid)
	if Stage(s.status.stage) != StageExec || syscall.Errno(s.status.errno) != syscall.ENOENT {
		t.Errorf("stage %v, %v", Stage(s.status.stage), syscall.Errno(s.status.errno))
	}
}
