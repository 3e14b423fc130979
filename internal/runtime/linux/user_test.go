package linux_test

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/otheruser"
)

// someone is a user without privileges.
const someone = 54321

// groupsVariable, when set, tells a process that tests started as root to enter
// these control groups and go on as someone.
const (
	groupsVariable    = "ATOLL_TEST_GROUPS"
	unlimitedVariable = "ATOLL_TEST_UNLIMITED"
)

func TestMain(m *testing.M) {
	if groups, ok := os.LookupEnv(groupsVariable); ok {
		if err := becomeSomeone(strings.Fields(groups)); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// becomeSomeone executes this program again, in other groups and as someone.
func becomeSomeone(groups []string) error {
	for _, dir := range groups {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
			return err
		}
	}
	if err := errors.Join(unix.Setgroups(nil), unix.Setresgid(someone, someone, someone), unix.Setresuid(someone, someone, someone), os.Unsetenv(groupsVariable)); err != nil {
		return err
	}
	return syscall.Exec(os.Args[0], os.Args, os.Environ())
}

// The whole suite as an ordinary user to whom control groups were delegated.
func TestUserSuite(t *testing.T) {
	asSomeone(t, "TestSuite", "^TestSuite$", delegate(t, "pids", "memory", "cpu"))
}

// Without control groups everything works but limits, which are refused.
func TestUserSuiteWithoutGroups(t *testing.T) {
	asSomeone(t, "TestSuite", "^TestSuite$", nil, unlimitedVariable+"=1")
}

// asSomeone runs one test of this package as an ordinary user.
func asSomeone(t *testing.T, name, tests string, groups []string, env ...string) {
	t.Helper()
	need.Root(t, "it becomes another user")
	dir := t.TempDir()
	otheruser.Open(t, dir)
	// Short: sockets are made below it.
	state, err := os.MkdirTemp("", "u") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	self, guest := filepath.Join(dir, "linux.test"), filepath.Join(dir, "atoll-guest")
	otheruser.Self(t, self)
	otheruser.Program(t, guest, guestProgram(t))
	if err := os.Chown(state, someone, someone); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run="+tests, "-test.v")
	cmd.Env = append(os.Environ(), "HOME="+state, "TMPDIR="+state, guestVariable+"="+guest, groupsVariable+"="+strings.Join(groups, " "))
	cmd.Env = append(cmd.Env, env...)
	cmd.Dir = state
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+name+" ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// delegate makes a control group in each of these hierarchies of version 1, and
// gives it to someone.
func delegate(t *testing.T, controllers ...string) (dirs []string) {
	t.Helper()
	need.Root(t, "it makes control groups")
	name := "atoll-test-" + strings.ToLower(rand.Text()[:8])
	for _, controller := range controllers {
		dir := filepath.Join("/sys/fs/cgroup", controller, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(ignoreMissing(os.Remove(filepath.Join(dir, "atoll"))), os.Remove(dir)); err != nil {
				t.Error(err)
			}
		})
		for _, file := range []string{"", "cgroup.procs", "tasks"} {
			if err := os.Chown(filepath.Join(dir, file), someone, someone); err != nil {
				t.Fatal(err)
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
