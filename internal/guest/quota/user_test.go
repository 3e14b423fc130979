package quota

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/otheruser"
)

const nobody = 65534

// dropToNobody makes the calling test as a user whom permissions bind.
func dropToNobody(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "test")
	otheruser.Self(t, program)
	home := mkdir(t, filepath.Join(dir, "home"))
	otheruser.Open(t, dir)
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = home, []string{"TMPDIR=" + home, "HOME=" + home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}
