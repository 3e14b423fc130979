package usage_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/usage"
)

func openFile(t *testing.T, path string, flags int) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestQuickCalls: what is not told to the scheduler does and says the same.
func TestQuickCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := openFile(t, path, os.O_RDWR|os.O_CREATE)
	for i, announced := range []bool{false, true, false} {
		if err := usage.QuickWrite(f, []byte("record;"), int64(7*i), announced); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "record;record;record;" {
		t.Errorf("%q, %v", text, err)
	}
	if size, err := usage.QuickSize(f); size != 21 || err != nil {
		t.Errorf("%d bytes, %v", size, err)
	}
	for _, announced := range []bool{false, true} {
		if err := usage.QuickWrite(openFile(t, "/dev/full", os.O_WRONLY), []byte("x"), 0, announced); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("a full disk: %v", err)
		}
		if err := usage.QuickWrite(openFile(t, path, os.O_RDONLY), []byte("x"), 0, announced); !errors.Is(err, unix.EBADF) {
			t.Errorf("a file to read: %v", err)
		}
	}
	if err := usage.QuickLock(f); err != nil {
		t.Error(err)
	}
	if err := usage.QuickLock(openFile(t, path, os.O_RDWR)); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("a second lock: %v", err)
	}
}
