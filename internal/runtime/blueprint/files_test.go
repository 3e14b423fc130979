package blueprint_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/runtime/blueprint"
)

func pair(t *testing.T) (a, b *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b = os.NewFile(uintptr(fds[0]), "a"), os.NewFile(uintptr(fds[1]), "b")
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

// More files than the kernel passes on at once follow a message.
func TestFilesFollowAMessage(t *testing.T) {
	ours, theirs := pair(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	const count = 300
	files := make([]*os.File, count)
	for i := range files {
		files[i] = null
	}
	sent := make(chan error, 1)
	go func() {
		sent <- errors.Join(blueprint.Send(ours, &blueprint.Blueprint{Files: count}), blueprint.SendFiles(ours, files), blueprint.Send(ours, &blueprint.Report{OK: true}))
	}()
	var plan blueprint.Blueprint
	if err := blueprint.Receive(theirs, &plan); err != nil || plan.Files != count {
		t.Fatal(plan.Files, err)
	}
	fds, err := blueprint.ReceiveFiles(theirs, plan.Files)
	if err != nil || len(fds) != count {
		t.Fatal(len(fds), err)
	}
	for _, fd := range fds {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d: %d, %v", fd, flags, err)
		}
		unix.Close(fd)
	}
	var report blueprint.Report
	if err := errors.Join(blueprint.Receive(theirs, &report), <-sent); err != nil || !report.OK {
		t.Error(report, err)
	}
}

func TestFilesThatDoNotCome(t *testing.T) {
	ours, theirs := pair(t)
	if _, err := ours.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	if fds, err := blueprint.ReceiveFiles(theirs, 1); err == nil {
		t.Error("a byte without a file was taken for one:", fds)
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	if fds, err := blueprint.ReceiveFiles(theirs, 1); err == nil {
		t.Error("the end was taken for a file:", fds)
	}
}
