package dockercli

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// A guest whose wire has ended is waited for while it dies, and not while it
// lives.
func TestGuestThatIsAboutToBeGone(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	guest := NewGuest("socket", cmd.Process.Pid, "")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if guest.hasExited(ctx) {
		t.Error("gone, and it lives")
	}
	dying := make(chan struct{})
	go func() {
		defer close(dying)
		time.Sleep(50 * time.Millisecond)
		_ = cmd.Process.Kill()
	}()
	if !guest.hasExited(t.Context()) {
		t.Error("it lives, and was killed")
	}
	<-dying
}
