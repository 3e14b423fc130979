package docker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/otheruser"
)

// someone is a user without privileges. The engine lets him in, as it does the
// members of its group.
const someone = 54321

// unprivileged, when set, tells this test binary that it was started as someone:
// "host flavor statedir program".
const unprivileged = "ATOLL_TEST_UNPRIVILEGED"

// Without root the guest travels in a volume and the wire is found all the same.
func TestWithoutRoot(t *testing.T) {
	if order := os.Getenv(unprivileged); order != "" {
		asSomeone(t, strings.Fields(order))
		return
	}
	need.Root(t, "it becomes another user")
	onEach(t, func(t *testing.T, l *lab) {
		tp := newTap(t, l.options.Host)
		removeGuestVolume(t, l)
		dir := openDir(t)
		program := filepath.Join(dir, "probe")
		body, err := probe()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program, body, 0o755); err != nil {
			t.Fatal(err)
		}
		socket := strings.TrimPrefix(tp.host, "unix://")
		reachableBy(t, socket)
		cmd := exec.CommandContext(t.Context(), copyOfSelf(t, dir), "-test.run=^TestWithoutRoot$", "-test.v")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %s", unprivileged, tp.host, l.options.Flavor, filepath.Join(dir, "state"), program), "HOME="+dir, "TMPDIR="+dir)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someone, Gid: someone}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestWithoutRoot") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// asSomeone is the other process.
func asSomeone(t *testing.T, order []string) {
	l := newLab(t, order[0], Flavor(order[1]), func(o *Options) {
		o.StateDir = order[2]
		o.Guest = func(string) ([]byte, error) { return os.ReadFile(order[3]) }
	})
	own := func(s *sandbox.Spec) { s.User = fmt.Sprintf("%d:%d", someone, someone) }
	if gaps := l.Check(t.Context(), l.spec(own)); len(gaps) != 0 {
		t.Errorf("gaps: %+v", gaps)
	}
	i := l.start(t, own)
	if got := sh(t, i, "id -u; stat -c %a /.atoll/guest"); got != fmt.Sprintf("%d\n111", someone) {
		t.Errorf("inside: %q", got)
	}
	if gaps := l.Check(t.Context(), l.spec()); len(gaps) != 1 || gaps[0].Field != "docker.user" {
		t.Errorf("another user's sandbox: %+v", gaps)
	}
	for _, user := range []string{"1234:1234", ""} {
		if _, err := l.Create(t.Context(), l.spec(func(s *sandbox.Spec) { s.User = user })); !errors.Is(err, sandbox.ErrUnsupported) {
			t.Errorf("user %q: %v", user, err)
		}
	}
	if err := i.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

// openDir is a directory that someone can work in.
func openDir(t *testing.T) string {
	t.Helper()
	//nolint:usetesting // the directories above one of t.TempDir are closed to others
	dir, err := os.MkdirTemp("", "atoll-someone-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, someone, someone)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// reachableBy opens the way to a socket.
func reachableBy(t *testing.T, socket string) {
	t.Helper()
	if err := os.Chmod(socket, 0o777); err != nil {
		t.Fatal(err)
	}
	otheruser.Open(t, filepath.Dir(socket))
}

func copyOfSelf(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "docker.test")
	otheruser.Self(t, path)
	return path
}
