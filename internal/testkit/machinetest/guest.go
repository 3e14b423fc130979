// Package machinetest starts real guests for tests of what stands on them.
package machinetest

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/guestbuild"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/wire"
)

// uid is the user of a guest: nobody, without any capability.
const uid = 65534

// Options say how a guest is started. The zero value is the usual sandbox.
type Options struct {
	Pids    int      // limit of processes; 0: none
	Memory  int64    // limit in bytes; 0: none
	Prepare string   // shell commands, as root, before the guest starts
	Args    []string // more arguments for the guest
	Program string   // the guest itself; "": the one of this tree
	Arch    string   // "": the host's, or what ArchEnv says; another is emulated
}

// Guest is a running guest: process 1 of a pid namespace with its own mounts,
// without privileges. To the file system it is not sandboxed.
type Guest struct {
	Dir     string // shared with the guest, and the user's own
	Socket  string
	Program string
	Process *os.Process // as the host sees it

	emulated bool
}

// Start starts a guest, and kills it with everything in it when the test ends.
// It needs root.
func Start(tb testing.TB, options *Options) *Guest {
	tb.Helper()
	need.Root(tb, "it makes pid namespaces")
	if options == nil {
		options = &Options{}
	}
	options = options.emulated(tb)
	g := &Guest{Dir: makeDir(tb), Program: install(tb, options), emulated: options.Arch != runtime.GOARCH}
	g.Socket = filepath.Join(g.Dir, "guest.sock")
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), "/bin/sh", append([]string{"-c", script(tb, options), g.Program, "init", "--socket", g.Socket}, options.Args...)...)
	cmd.Dir = g.Dir
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWPID,
		Unshareflags: syscall.CLONE_NEWNS, // makes the mounts private
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	g.Process = cmd.Process
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return g
}

// makeDir makes a directory that belongs to the guest's user.
func makeDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "atoll-wire-")
	if err == nil {
		err = os.Chown(dir, uid, uid)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// install puts the guest where its user can run it and not read it.
func install(tb testing.TB, options *Options) string {
	tb.Helper()
	program, mode := options.Program, os.FileMode(0o711)
	if program == "" {
		program = guestbuild.BuildFor(tb, options.Arch)
	}
	if options.Arch != runtime.GOARCH {
		mode = 0o755 // the emulator reads it
	}
	content, err := os.ReadFile(program)
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "atoll-guest-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "guest")
	if err := os.WriteFile(path, content, mode); err != nil {
		tb.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		tb.Fatal(err)
	}
	return path
}

// script makes a sandbox of the process that becomes the guest: its limits, a
// /proc of its own, no privileges.
func script(tb testing.TB, options *Options) string {
	tb.Helper()
	lines := []string{"set -e"}
	if options.Pids > 0 {
		lines = append(lines, enter(tb, "pids", "pids.max", strconv.Itoa(options.Pids)))
	}
	if options.Memory > 0 {
		group := enter(tb, "memory", "memory.limit_in_bytes", strconv.FormatInt(options.Memory, 10))
		lines = append(lines, group)
	}
	lines = append(lines, "mount -t proc proc /proc", options.Prepare,
		"exec setpriv --reuid="+strconv.Itoa(uid)+" --regid="+strconv.Itoa(uid)+
			` --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs `+options.emulator()+`"$0" "$@"`)
	return strings.Join(lines, "\n")
}

// enter makes a control group with one limit, removed when the test ends, and
// returns the command that enters it. Inside, as in a container, the group is
// all that can be seen of its kind.
func enter(tb testing.TB, kind, file, limit string) string {
	tb.Helper()
	root := filepath.Join("/sys/fs/cgroup", kind)
	group, err := os.MkdirTemp(root, "atoll-test-")
	if err == nil {
		err = errors.Join(os.Chmod(group, 0o755), os.WriteFile(filepath.Join(group, file), []byte(limit), 0))
	}
	if err != nil {
		tb.Fatalf("this test needs a control group: %v", err)
	}
	tb.Cleanup(func() { removeGroup(tb, group) })
	return "echo $$ > " + group + "/tasks\nmount --bind " + group + " " + root
}

// removeGroup waits for the last process to be gone from it.
func removeGroup(tb testing.TB, group string) {
	for range 200 {
		if err := os.Remove(group); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	tb.Errorf("processes are left in %s", group)
}

// Dial opens a wire, as a runtime does.
func (g *Guest) Dial(ctx context.Context) (net.Conn, error) { return wire.DialSocket(ctx, g.Socket) }

// Machine returns a machine on the guest, closed when the test ends.
func (g *Guest) Machine(tb testing.TB, options *machine.Options) *machine.Machine {
	tb.Helper()
	if g.emulated && options == nil {
		options = &machine.Options{DialTimeout: emulatedPatience}
	}
	m := machine.New(g.Dial, options)
	tb.Cleanup(func() { _ = m.Close() })
	return m
}
