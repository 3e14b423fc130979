// Package machinetest starts real guests for tests of what stands on them.
package machinetest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/guestbin/guestbuild"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// Guest is a running guest: process 1 of a pid namespace of its own, and
// otherwise not sandboxed. It needs root.
type Guest struct {
	Socket  string
	Process *os.Process // as the host sees it
}

// Start starts a guest and kills it, with everything in it, when the test ends.
func Start(tb testing.TB, args ...string) *Guest {
	tb.Helper()
	if os.Getuid() != 0 {
		tb.Fatal("this test makes pid namespaces: run it as root")
	}
	dir, err := os.MkdirTemp("", "atoll-wire-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	g := &Guest{Socket: filepath.Join(dir, "guest.sock")}
	// A /proc of the new namespace, as in every sandbox.
	script := `mount -t proc proc /proc && exec "$0" "$@"`
	argv := append([]string{"-c", script, guestbuild.Build(tb), "init", "--socket", g.Socket}, args...)
	cmd := exec.Command("/bin/sh", argv...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Unshareflags: syscall.CLONE_NEWNS, // makes the mounts private
		Pdeathsig:    syscall.SIGKILL,
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

// Dial opens a wire, as a runtime would.
func (g *Guest) Dial(ctx context.Context) (net.Conn, error) { return wire.DialSocket(ctx, g.Socket) }

// Machine returns a machine on the guest, closed when the test ends.
func (g *Guest) Machine(tb testing.TB, options *machine.Options) *machine.Machine {
	tb.Helper()
	m := machine.New(g.Dial, options)
	tb.Cleanup(func() { _ = m.Close() })
	return m
}
