package audit_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
)

const childDir = "ATOLL_TEST_AUDIT_DIR"

func isChild() bool { return os.Getenv(childDir) != "" }

// child writes records until it is killed.
func child() {
	l, err := audit.Open(os.Getenv(childDir), audit.Options{SyncEvery: 5 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		if err := l.Append(paid(fmt.Sprint(i))); err != nil {
			panic(err)
		}
		time.Sleep(time.Microsecond)
	}
}

// A killed writer's segment is left as it is, the next one says where it ended,
// and from then on cutting it is found.
func TestATornSegmentIsClosedByTheNext(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitForSize(t, dir, 64<<10)
	report := verify(t, dir, audit.VerifyOptions{}) // while it writes
	for _, p := range report.Problems {
		t.Error(p)
	}
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()

	torn := segments(t, dir)[0]
	f, err := os.OpenFile(torn, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("0123 half a li"); err != nil { // as a full disk leaves it
		t.Fatal(err)
	}
	_ = f.Close()
	before, err := os.ReadFile(torn)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, 3)
	after, err := os.ReadFile(torn)
	if err != nil || string(after) != string(before) {
		t.Errorf("the torn segment was written to: %v", err)
	}
	if report := sound(t, dir); report.Records < 100 {
		t.Errorf("%+v", report)
	}
	for name, size := range map[string]int{"tail": len(before) - 3, "more": len(before) - 4000} {
		if err := os.WriteFile(torn, before[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if report := verify(t, dir, audit.VerifyOptions{}); len(report.Problems) == 0 {
			t.Errorf("%s: cutting the torn segment was not found", name)
		}
	}
}

// waitForSize waits until the first segment holds so many bytes.
func waitForSize(t *testing.T, dir string, size int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if paths := segments(t, dir); len(paths) > 0 {
			if info, err := os.Stat(paths[0]); err == nil && info.Size() >= size {
				return
			}
		}
	}
	t.Fatal("the child wrote nothing")
}
