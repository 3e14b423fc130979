package confined_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/secret"
)

// hardenedChild has the test binary be a hardened process of an ordinary user.
const hardenedChild = "ATOLL_CONFINED_HARDENED"

func TestMain(m *testing.M) {
	if os.Getenv(hardenedChild) == "" {
		os.Exit(m.Run())
	}
	if err := runHardened(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runHardened confines a program from a hardened process, and checks that the
// process is hardened afterwards.
func runHardened() error {
	if os.Getuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
	}
	if err := secret.Harden(); err != nil {
		return err
	}
	for range 3 {
		if err := confined.Run(context.Background(), &confined.Program{Path: "/bin/true"}); err != nil {
			return err
		}
	}
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || dumpable != 0 {
		return fmt.Errorf("dumpable %d, %w", dumpable, err)
	}
	return nil
}

// A process of an ordinary user that holds keys confines programs too, and stays
// hardened. Seen to fail with cmd.Start in place of secret.StartChild.
func TestHardenedProcessesConfine(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), hardenedChild+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, bytes.TrimSpace(out))
	}
}
