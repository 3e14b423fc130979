package otheruser

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// someone is the number of the ordinary user, and of its group.
const someone = 1000

// Rerun runs tests of the running test binary as an ordinary user, with a home and temporary
// files of its own, and returns what they print.
func Rerun(tb testing.TB, pattern string) (out string, err error) {
	tb.Helper()
	need.Root(tb, "it becomes another user")
	dir := tb.TempDir()
	Open(tb, dir)
	state, err := os.MkdirTemp("", "u") //nolint:usetesting // short: sockets are made below it
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(state) })
	if err := os.Chown(state, someone, someone); err != nil {
		tb.Fatal(err)
	}
	self := filepath.Join(dir, "own.test")
	Self(tb, self)
	cmd := exec.CommandContext(tb.Context(), self, "-test.v", "-test.run="+pattern)
	cmd.Env = append(os.Environ(), "HOME="+state, "TMPDIR="+state)
	cmd.Dir = state
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someone, Gid: someone}}
	printed, err := cmd.CombinedOutput()
	return string(printed), err
}
