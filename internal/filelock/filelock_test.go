package filelock_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
)

func openBook(t *testing.T) *filelock.Locks {
	t.Helper()
	b, err := filelock.Open(filepath.Join(t.TempDir(), "leases"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSharersShareAndAHolderIsAlone(t *testing.T) {
	b := openBook(t)
	one, err := b.Share(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.Share(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.TryHold("a"); !errors.Is(err, filelock.ErrHeld) {
		t.Fatalf("TryHold beside two sharers: %v, want ErrHeld", err)
	}
	if other, err := b.TryHold("b"); err != nil {
		t.Fatalf("another name is not affected: %v", err)
	} else {
		other.Release()
	}
	one.Release()
	two.Release()
	alone, err := b.TryHold("a")
	if err != nil {
		t.Fatalf("after both released: %v", err)
	}
	alone.Release()
	alone.Release() // twice is harmless
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	b := openBook(t)
	held, err := b.Hold(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := b.Share(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the deadline", err)
	}
}

func TestWaitingEndsWithTheHolder(t *testing.T) {
	b := openBook(t)
	held, err := b.Hold(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(30*time.Millisecond, held.Release)
	next, err := b.Hold(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	next.Release()
}

// TestKillEndsALease lets a second process hold a name and kills it.
func TestKillEndsALease(t *testing.T) {
	if path := os.Getenv("LEASE_TEST_HOLD"); path != "" {
		b, err := filelock.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Hold(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("held\n")
		time.Sleep(time.Minute)
	}
	path := filepath.Join(t.TempDir(), "leases")
	b, err := filelock.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillEndsALease$")
	child.Env = append(os.Environ(), "LEASE_TEST_HOLD="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.TryHold("a"); !errors.Is(err, filelock.ErrHeld) {
		t.Fatalf("while the child lives: %v, want ErrHeld", err)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	l, err := b.TryHold("a")
	if err != nil {
		t.Fatalf("after kill -9 of the holder: %v", err)
	}
	l.Release()
}

// A lock that is shared or held is found without taking it.
func TestIsHeld(t *testing.T) {
	b := openBook(t)
	for name, take := range map[string]func() (*filelock.Lock, error){
		"shared": func() (*filelock.Lock, error) { return b.Share(t.Context(), "shared") },
		"held":   func() (*filelock.Lock, error) { return b.TryHold("held") },
	} {
		if held, err := b.IsHeld(name); held || err != nil {
			t.Errorf("%s before: %v %v", name, held, err)
		}
		l, err := take()
		if err != nil {
			t.Fatal(err)
		}
		if held, err := b.IsHeld(name); !held || err != nil {
			t.Errorf("%s: %v %v", name, held, err)
		}
		l.Release()
		if held, err := b.IsHeld(name); held || err != nil {
			t.Errorf("%s after: %v %v", name, held, err)
		}
	}
}
