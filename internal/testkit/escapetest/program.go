package escapetest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const attackPackage = "github.com/atoll-run/atoll/internal/testkit/escapetest/testdata/attack"

// Program is an environment variable: where a process that a test starts finds
// the attack program, so that it needs no compiler.
const Program = "ATOLL_TEST_ATTACK"

// Attack builds the attack program once, and returns its content.
func Attack(t *testing.T) []byte {
	t.Helper()
	body, err := buildAttack()
	if err != nil {
		t.Fatalf("build the attack program: %v", err)
	}
	return body
}

var buildAttack = sync.OnceValues(func() ([]byte, error) {
	if path := os.Getenv(Program); path != "" {
		return os.ReadFile(path)
	}
	dir, err := os.MkdirTemp("", "atoll-attack-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "attack")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, attackPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(path)
})

// outside makes an attack without walls, in a mount namespace of its own, and
// returns what it printed and how it ended. It may change only what was made for it.
func outside(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	before, _ := unix.Getpriority(unix.PRIO_PROCESS, 0)
	defer func() {
		if after, _ := unix.Getpriority(unix.PRIO_PROCESS, 0); after != before {
			t.Errorf("%v outside changed the priority of this process too", args)
		}
	}()
	path := filepath.Join(dir, "attack")
	if _, err := os.Stat(path); err != nil {
		if err := os.WriteFile(path, Attack(t), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for {
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		if os.Geteuid() == 0 {
			cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.ETXTBSY) {
			continue // another test's fork holds the file that was just written
		}
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
}
