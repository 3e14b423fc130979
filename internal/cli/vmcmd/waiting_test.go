//go:build linux

package vmcmd_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/limatest"
)

// Work that waits inside, commits too, is there after a stop and a start, also one by
// force; the gateway inside shows it to the Mac.
func TestWaitingWorkOutlivesAStop(t *testing.T) {
	m := newMac(t)
	t.Setenv(limatest.GatewayVariable, "1")
	m.git("init", "-q", "-b", "main")
	m.git("add", ".")
	m.git("commit", "-qm", "begin")
	m.configure("")
	m.must("", "up")
	m.Chdir(filepath.Join(m.home, "project"))
	m.work(`echo committed >c.txt; git add c.txt; git -c user.name=a -c user.email=a@b.example commit -qm made; echo plain >p.txt`)
	const waits = " files and 1 commits on /mnt/openclaw"
	m.refused(waits, "delete")
	for _, stop := range [][]string{{"down"}, {"down", "--force"}, {"restart"}} {
		m.must("", stop...)
		m.must("", "up")
		m.refused(waits, "delete")
		m.work(`test "$(git log -1 --format=%s)" = made; test "$(cat c.txt p.txt)" = "$(printf 'committed\nplain')"`)
	}
	out, err := m.command("sync", "status").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "p.txt") {
		t.Errorf("%v %s", err, out)
	}
	if out, err := m.command("sync", "diff", "p.txt").CombinedOutput(); err != nil || !strings.Contains(string(out), "+plain") {
		t.Errorf("%v %s", err, out)
	}
	m.must("applied  1 files", "apply", "--all-passing")
	m.refused(waits, "delete") // the commit stays inside
	m.work("git reset -q HEAD~")
	m.must("applied  1 files", "apply", "--all-passing")
	m.holds("c.txt", "committed\n")
	m.holds("p.txt", "plain\n")
	m.must("", "delete")
}

// git runs git in the project.
func (m *mac) git(args ...string) {
	m.Helper()
	cmd := exec.CommandContext(m.Context(), "git", append([]string{"-c", "user.name=p", "-c", "user.email=p@example.org"}, args...)...)
	cmd.Dir = filepath.Join(m.home, "project")
	if out, err := cmd.CombinedOutput(); err != nil {
		m.Fatalf("%v %s", err, out)
	}
}
