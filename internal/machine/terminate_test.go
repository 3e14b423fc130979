package machine_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/wire"
)

// TestFilesAfterTheSignal: a guest that was told to keep files ends its commands when the
// sandbox is to end, and what they left running; it starts no other, and serves files until
// the host has them.
func TestFilesAfterTheSignal(t *testing.T) {
	guest := machinetest.Start(t, nil)
	m := guest.Machine(t, nil)
	left := filepath.Join(guest.Dir, "left")
	check(t, m.KeepFiles(patience(t), time.Minute))
	sh(t, m, "(sleep 1000; echo alive >>"+left+") >/dev/null 2>&1 & echo text >"+left)
	ended := make(chan error, 1)
	r, w := io.Pipe()
	go func() {
		_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"/bin/sh", "-c", "echo began; exec sleep 1000"}, Stdout: w})
		ended <- err
	}()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	defer w.Close()
	check(t, guest.Process.Signal(syscall.SIGTERM))
	if err := <-ended; !errors.Is(err, machine.ErrTerminated) || !errors.Is(err, machine.ErrLost) {
		t.Errorf("the command that was under way ends with %v", err)
	}
	check(t, m.EndCommands(patience(t), time.Minute)) // returns when they have
	if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"true"}}); !errors.Is(err, machine.ErrTerminated) {
		t.Errorf("another one ends with %v", err)
	}
	files, err := guestfs.New(m, []guestfs.Root{{Path: guest.Dir}})
	check(t, err)
	if _, err := files.Stat(patience(t), left); err != nil {
		t.Errorf("a file: %v", err)
	}
	if text, err := os.ReadFile(left); string(text) != "text\n" || err != nil { // its sleep was ended, and itself
		t.Errorf("what a command had left ran on: %q, %v", text, err)
	}
	check(t, m.KeepFiles(patience(t), 0))
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := guest.Dial(t.Context())
		if err != nil {
			break
		}
		_ = conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("the guest goes on")
		}
	}
}

// TestMalformedTermination is refused before anything is sent, and by the guest.
func TestMalformedTermination(t *testing.T) {
	m := machinetest.Start(t, nil).Machine(t, nil)
	if m.KeepFiles(patience(t), 2*wire.MaxTerminateWait) == nil {
		t.Error("a wait without end was accepted")
	}
	err := m.Call(patience(t), &machine.UnaryCall{Request: &wire.Request{Op: wire.OpTerminate, Terminate: &wire.Terminate{WaitMs: -1}}}, &struct{}{})
	if !errors.Is(err, machine.ErrInvalid) {
		t.Error(err)
	}
}
