//go:build linux

package main

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/otheruser"
)

const (
	// someone is a user without privileges.
	someone = 54324
	// groupsVariable, when set, tells a process that was started as root to enter
	// these control groups and go on as someone.
	groupsVariable = "ATOLL_TEST_GROUPS"
	// memberVariable is the number of a user group that someone is a member of.
	memberVariable = "ATOLL_TEST_MEMBER"
	// scriptsVariable says where scripts are that someone can read, and
	// demoVariable where the demo is.
	scriptsVariable = "ATOLL_TEST_SCRIPTS"
	demoVariable    = "ATOLL_TEST_DEMO"

	demoScript = "../../scripts/demo.sh"
)

// becomeSomeone executes this program again, in other groups and as someone.
func becomeSomeone(groups []string) error {
	for _, dir := range groups {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
			return err
		}
	}
	var member []int
	if gid, err := strconv.Atoi(os.Getenv(memberVariable)); err == nil {
		member = []int{gid}
	}
	if err := errors.Join(unix.Setgroups(member), unix.Setresgid(someone, someone, someone), unix.Setresuid(someone, someone, someone), os.Unsetenv(groupsVariable)); err != nil {
		return err
	}
	return syscall.Exec(os.Args[0], os.Args, os.Environ())
}

// The scripts that need no engine need no root either: an ordinary user to whom
// control groups were delegated runs all of them.
func TestLinuxScriptAsUser(t *testing.T) {
	asSomeone(t, "TestLinuxScript", delegate(t, "pids", "memory", "cpu"))
}

// What `make run` shows needs neither an engine, nor root, nor a control group.
func TestDemoAsUser(t *testing.T) { asSomeone(t, "TestDemo", nil) }

// needAnother leaves out a test that cannot become another user, before it prepares anything.
func needAnother(t *testing.T) {
	t.Helper()
	need.Root(t, "it becomes another user")
}

// asSomeone runs one test of this package as an ordinary user, with more variables.
func asSomeone(t *testing.T, name string, groups []string, env ...string) {
	t.Helper()
	needAnother(t)
	dir, err := os.MkdirTemp("", "u") //nolint:usetesting // short, for sockets, and another user's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	demo, err := os.ReadFile(demoScript)
	if err != nil {
		t.Fatal(err)
	}
	self, copied := filepath.Join(dir, "atoll.test"), filepath.Join(dir, "demo.sh")
	otheruser.Self(t, self)
	if err := errors.Join(os.WriteFile(copied, demo, 0o600),
		os.CopyFS(filepath.Join(dir, "scripts"), os.DirFS(engineScripts)), copyDirectoryScripts(filepath.Join(dir, "scripts")), copyDocuments(dir), giveAway(dir)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+name+"$", "-test.v", "-test.parallel=2")
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), env...), "HOME="+dir, "TMPDIR="+dir, scriptsVariable+"="+filepath.Join(dir, "scripts"), demoVariable+"="+copied, documentsVariable+"="+dir,
		groupsVariable+"="+strings.Join(groups, " "))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+name+" ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// copyDirectoryScripts copies the scripts that both root and someone run.
func copyDirectoryScripts(dir string) error {
	for _, name := range directoryScripts {
		text, err := os.ReadFile(filepath.Join(scripts, name+".txtar"))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".txtar"), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyDocuments copies what is written for users, so that someone can read it.
func copyDocuments(dir string) error {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "README.md"), text, 0o600), os.CopyFS(filepath.Join(dir, "docs"), os.DirFS("../../docs")))
}

// giveAway makes a directory, and all in it, someone's.
func giveAway(dir string) error { return giveTo(dir, someone) }

// giveTo makes a directory, and all in it, a user's.
func giveTo(dir string, uid int) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
}

// removeGroups removes a control group and those in it. Sandboxes that a script
// lost behind Atoll's back leave theirs, empty.
func removeGroups(dir string) {
	groups, _ := os.ReadDir(dir) // there may be none
	for _, g := range groups {
		if g.IsDir() {
			_ = os.Remove(filepath.Join(dir, g.Name())) // one that is in use keeps its parent, which is noticed
		}
	}
	_ = os.Remove(dir)
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
			removeGroups(filepath.Join(dir, "atoll"))
			if err := os.Remove(dir); err != nil {
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
