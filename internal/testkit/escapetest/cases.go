package escapetest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/wire"
)

// testCase is an attack that needs a stage of its own.
type testCase struct {
	name string
	test func(*arena)
}

var cases = []testCase{
	{"ptrace across", func(a *arena) {
		victim := a.canaryProcess()
		pid := strconv.Itoa(victim.Process.Pid)
		a.start().refused("trace", pid)
		a.wantAlive(victim)
		if out, code := outside(a.t, a.dir, "trace", pid); code != 1 {
			a.t.Errorf("without walls no step works either (%d)\n%s", code, out)
		}
	}},
	{"signals to processes of the host", func(a *arena) {
		victim, control := a.canaryProcess(), a.canaryProcess()
		a.start().refused("signal", strconv.Itoa(victim.Process.Pid))
		a.wantAlive(victim)
		if out, code := outside(a.t, a.dir, "signal", strconv.Itoa(control.Process.Pid)); code != 1 {
			a.t.Errorf("without walls no step works either (%d)\n%s", code, out)
		}
	}},
	{"every signal to the guest, and to everybody", func(a *arena) {
		victim, c := a.canaryProcess(), a.start()
		c.attack("end-guest")
		a.wantAlive(victim)
		c.alive()
	}},
	{"a process's own priority", func(a *arena) {
		if out, result := a.start().attack("own-schedule"); result.ExitCode != 1 {
			a.t.Errorf("a program cannot change its own priority (%d)\n%s", result.ExitCode, out)
		}
	}},
	{"a probe that is killed", killedProbe},
	{"set-user-ID files, capabilities and devices of a root with capabilities", lendingByRoot},
	{"abstract sockets of the host", func(a *arena) {
		name := a.canarySocket()
		a.start().refused("abstract-socket", name)
		if out, code := outside(a.t, a.dir, "abstract-socket", name); code != 1 {
			a.t.Errorf("without walls no step works either (%d)\n%s", code, out)
		}
	}},
	{"a working directory behind a descriptor", workdirBehindDescriptor},
	{"commands in directories behind descriptors", commandsBehindDescriptors},
	{"a program that names its runner as interpreter", ownInterpreter},
	{"devices replaced before a start", replacedDevices},
	{"the guest's socket replaced by a link to one of the host", replacedSocket},
	{"links swapped under a mount's target during starts", swappedTargets},
	{"links swapped under a mount's source during starts", swappedSources},
	{"hard links swapped under a mount's source during starts", hardSources},
	{"hard links swapped under a mount's target during starts", hardTargets},
	{"inotify instances of the host's user", watchersOfTheHost},
	{"descriptors in flight of the user", descriptorsInFlight},
	{"memory of socket buffers", socketBuffers},
	{"inode fill of a temporary file system with a number", numberedInodes},
	{"disk fill of a writable root by one file", writableRoot},
	{"disk fill", func(a *arena) { a.overfill(wire.QuotaSize, "fill-over", workdir, "1000", "named") }},
	{"disk fill by files without a name", func(a *arena) { a.overfill(wire.QuotaSize, "fill-over", workdir, "1000", "nameless") }},
	{"disk fill behind closed directories", func(a *arena) { a.overfill(wire.QuotaSize, "fill-over", workdir, "1000", "closed") }},
	{"disk fill by a process that nobody waits for", fillBehind},
	{"disk fill between two looks, and again while it is full", fillQuick},
	{"inode fill", func(a *arena) { a.overfill(wire.QuotaFiles, "inodes-over", workdir, "100000") }},
}

// lendingByRoot has the engine leave its usual capabilities to user 0, who could
// give files of the host capabilities and make devices there.
func lendingByRoot(a *arena) {
	if !a.Engine {
		return // nothing but an engine leaves capabilities to a sandbox
	}
	c := a.start(func(s *sandbox.Spec) { s.User, s.CapDrop = "0:0", []string{"NET_RAW"} })
	c.refused("set-id", workdir)
	c.refused("devices", workdir)
}

// workdirBehindDescriptor is CVE-2024-21626: the sandbox's working directory is a
// descriptor that the runtime had open while it made the sandbox. A refusal is as
// good as a directory inside.
func workdirBehindDescriptor(a *arena) {
	first, last := 3, 15
	if a.Slow {
		first, last = 7, 9 // those that runc left open
	}
	tried := 0
	for fd := first; fd <= last; fd++ {
		c, err := a.tryStart(a.spec(func(s *sandbox.Spec) { s.Workdir = fmt.Sprintf("/proc/self/fd/%d", fd) }))
		if err != nil {
			a.t.Logf("descriptor %d: %v", fd, err)
			a.sweep()
			continue
		}
		tried++
		out, result, err := c.attackIn("", "descriptors", a.path("host/canary"), canaryWords)
		a.t.Logf("descriptor %d: %v\n%s", fd, err, out)
		if err == nil && result.ExitCode == 1 {
			a.t.Errorf("descriptor %d leads out", fd)
		}
		a.sweep()
	}
	a.t.Logf("%d could be started", tried)
	a.wantCanary("host")
}

// commandsBehindDescriptors is the same for a command's directory, in a sandbox that
// runs.
func commandsBehindDescriptors(a *arena) {
	c := a.start()
	for _, dir := range []string{"/proc/1/cwd", "/proc/1/root", "/proc/self/cwd", "/proc/self/root"} {
		a.tryDir(c, dir)
	}
	for fd := range 24 {
		a.tryDir(c, fmt.Sprintf("/proc/self/fd/%d", fd))
		a.tryDir(c, fmt.Sprintf("/proc/1/fd/%d", fd))
	}
	c.alive()
}

func (a *arena) tryDir(c *cell, dir string) {
	a.t.Helper()
	out, result, err := c.attackIn(dir, "descriptors", a.path("host/canary"), canaryWords)
	if err == nil && result.ExitCode == 1 {
		a.t.Errorf("a command in %s gets out\n%s", dir, out)
	}
}

// ownInterpreter is CVE-2019-5736: a process that runs this script executes itself,
// inside, where its file could be opened for writing once it has ended.
func ownInterpreter(a *arena) {
	c := a.start()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	var running sync.WaitGroup
	for _, script := range []string{"/script", "/script2", "/script", "/script2"} {
		running.Go(func() {
			_, _ = c.machine.Exec(ctx, &machine.Command{Argv: []string{workdir + script}, Timeout: time.Second, EndTree: true})
		})
	}
	for range 4 {
		c.refused("exe-overwrite")
	}
	running.Wait()
	c.alive()
}

// replacedDevices is CVE-2025-31133, -52565 and -52881: files that a start trusts
// were replaced by links before it. Afterwards the masks are in place, and the
// setting that the links named is unchanged.
func replacedDevices(a *arena) {
	const setting = "/proc/sys/kernel/core_pattern"
	before, err := os.ReadFile(setting)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false}[:a.roots()] {
		c := a.start(func(s *sandbox.Spec) { s.ReadOnlyRoot = readOnly })
		out, _ := c.attack("replace-devices", setting)
		a.t.Logf("read-only root %v:\n%s", readOnly, out)
		if again := c.restart(); again != nil {
			again.refused("masked-paths")
			again.refused("core-pattern")
		}
	}
	if after, err := os.ReadFile(setting); err != nil || !bytes.Equal(before, after) {
		a.t.Errorf("%s is now %q, was %q (%v)", setting, after, before, err)
	}
}

// roots is how many kinds of roots are tried: where sandboxes have no user 0, one that may
// be written is as closed as one that may not.
func (a *arena) roots() int {
	if a.Copies {
		return 1
	}
	return 2
}

// restart stops and starts a sandbox. Nil is one that does not start any more,
// which is safe.
func (c *cell) restart() *cell {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	if err := c.instance.Stop(ctx, time.Second); err != nil {
		c.t.Fatal(err)
	}
	if err := c.instance.Start(ctx); err != nil {
		c.t.Logf("it does not start any more: %v", err)
		return nil
	}
	return c.enter(c.spec, c.instance)
}

// replacedSocket replaces the socket of the guest by links: the host connects only to
// the init process of the sandbox.
func replacedSocket(a *arena) {
	listener, err := (&net.ListenConfig{}).Listen(a.t.Context(), "unix", a.path("host.sock"))
	if err != nil {
		a.t.Fatal(err)
	}
	var heard atomic.Int64
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			text := make([]byte, 1)
			if n, _ := conn.Read(text); n > 0 {
				heard.Add(1)
			}
			_ = conn.Close()
		}
	}()
	c := a.start()
	out, _ := c.attack("replace-socket", a.path("host.sock"))
	a.t.Log(out)
	ctx, cancel := context.WithTimeout(a.t.Context(), 3*time.Second)
	defer cancel()
	later, err := a.Open(a.t, a.path("state")).Open(ctx, c.spec.Name)
	if err == nil {
		if conn, err := later.Dial(ctx); err == nil {
			_, _ = conn.Write([]byte("hello"))
			_ = conn.Close()
		}
	}
	_ = listener.Close()
	<-served
	if heard.Load() > 0 {
		a.t.Error("the host spoke to a socket of its own that a link inside named")
	}
}
