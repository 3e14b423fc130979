package linux_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/testkit/escapetest"
	"github.com/atoll-run/atoll/internal/testkit/otheruser"
)

// Hostile code in sandboxes that root made, as an ordinary user and as root.
func TestEscape(t *testing.T) {
	if os.Geteuid() != 0 {
		escapetest.Run(t, escapetest.Subject{Open: open, Backend: "linux", Image: rootfs.HostName, Limits: os.Getenv(limitsVariable) != ""})
		return
	}
	s := escapetest.Subject{Open: open, Backend: "linux", Image: rootfs.HostName, User: "1000:1000", Limits: true}
	t.Run("user", func(t *testing.T) { escapetest.Run(t, s) })
	s.User = "0:0"
	t.Run("root", func(t *testing.T) { escapetest.Run(t, s) })
}

// limitsVariable, when set, says that an ordinary user has control groups.
const limitsVariable = "ATOLL_TEST_LIMITS"

// Bombs in sandboxes of an ordinary user to whom control groups were delegated.
func TestEscapeOfAUserWithGroups(t *testing.T) {
	if os.Geteuid() != 0 {
		return // TestEscape did it
	}
	dir := t.TempDir()
	otheruser.Open(t, dir)
	attack := filepath.Join(dir, "attack")
	if err := os.WriteFile(attack, escapetest.Attack(t), 0o755); err != nil {
		t.Fatal(err)
	}
	asSomeone(t, "TestEscape", "^TestEscape$/^bombs$", delegate(t, "pids", "memory", "cpu"), limitsVariable+"=1", escapetest.Program+"="+attack)
}

// nobodySpecial is a user without privileges and without a group of his own
// that limits could be set in.
const nobodySpecial = 54322

// Hostile code in sandboxes that somebody without privileges made.
func TestEscapeWithoutRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		return // TestEscape did it
	}
	dir, err := os.MkdirTemp("", "atoll") //nolint:usetesting // becomes another user's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{"test": own, "attack": escapetest.Attack(t), "guest": guestProgram(t)} {
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, nobodySpecial, nobodySpecial); err != nil {
		t.Fatal(err)
	}
	out, err := asNobodySpecial(t, dir, "-test.run=^TestEscape$", "-test.v")
	if err != nil || !strings.Contains(string(out), "--- PASS: TestEscape") {
		t.Errorf("%v\n%s", err, out)
	}
}

func asNobodySpecial(t *testing.T, dir string, args ...string) ([]byte, error) {
	t.Helper()
	for {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "test"), args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "GORACE=" + os.Getenv("GORACE"),
			guestVariable + "=" + filepath.Join(dir, "guest"), escapetest.Program + "=" + filepath.Join(dir, "attack")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodySpecial, Gid: nobodySpecial}}
		out, err := cmd.CombinedOutput()
		if !errors.Is(err, syscall.ETXTBSY) { // another test's fork may hold the file that was just written
			return out, err
		}
	}
}
