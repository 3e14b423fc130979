package escapetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

const (
	// patience bounds every single step on a loaded machine.
	patience = 2 * time.Minute
	// canaryWords are in the file that no process inside may read.
	canaryWords = "the canary is alive"
	workdir     = "/workspace"
	program     = workdir + "/attack"
)

// arena is one installation with what attackers are after.
type arena struct {
	Subject
	t       *testing.T
	dir     string // of the test, on the host
	runtime sandbox.Runtime
	home    *cell // serves the attacks that leave a sandbox as it was; nil: each has its own
}

func newArena(t *testing.T, s Subject) *arena {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll") // a short path, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &arena{Subject: s, t: t, dir: dir}
	for _, name := range []string{"state", "workspace", "readonly", "host"} {
		a.mkdir(name)
	}
	a.write("host/canary", canaryWords, 0o644)
	a.write("readonly/canary", canaryWords, 0o666)
	a.write("workspace/attack", string(Attack(t)), 0o755)
	a.write("workspace/script", "#!/proc/self/exe\n", 0o755)
	a.write("workspace/script2", "#!/.atoll/guest pass\n", 0o755)
	a.runtime = s.Open(t, a.path("state"))
	t.Cleanup(a.sweep)
	return a
}

func (a *arena) path(name string) string { return filepath.Join(a.dir, name) }

func (a *arena) mkdir(name string) {
	a.t.Helper()
	if err := os.MkdirAll(a.path(name), 0o777); err != nil {
		a.t.Fatal(err)
	}
	mode := os.FileMode(0o777) // for any user of the sandbox
	if name == "state" {
		mode = 0o755
	}
	for _, dir := range []string{a.dir, a.path(name)} {
		if err := os.Chmod(dir, mode); err != nil {
			a.t.Fatal(err)
		}
	}
}

func (a *arena) write(name, text string, mode os.FileMode) {
	a.t.Helper()
	if err := os.WriteFile(a.path(name), []byte(text), mode); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Chmod(a.path(name), mode); err != nil {
		a.t.Fatal(err)
	}
}

// sweep removes every sandbox that a test left.
func (a *arena) sweep() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.t.Context()), patience)
	defer cancel()
	left, err := a.runtime.List(ctx)
	if err != nil {
		a.t.Errorf("sweep: %v", err)
	}
	for _, l := range left {
		inst, err := a.runtime.Open(ctx, l.Name)
		if err == nil {
			err = inst.Remove(ctx)
		}
		if err != nil && !errors.Is(err, sandbox.ErrNotFound) {
			a.t.Errorf("sweep %s: %v", l.Name, err)
		}
	}
}

// spec is a sandbox as the defaults make it, with one more read-only mount.
func (a *arena) spec(changes ...func(*sandbox.Spec)) *sandbox.Spec {
	s := &sandbox.Spec{
		Name: "atoll-escape-" + strings.ToLower(rand.Text()[:12]), ScopeKey: "agent:main", AgentID: "main", Backend: a.Backend, ConfigHash: "hash", MountsHash: "mounts",
		Image: a.Image, User: a.User, Workdir: workdir, ReadOnlyRoot: true, Network: "none", CapDrop: []string{"ALL"},
		Tmpfs:  []sandbox.Tmpfs{{Target: "/tmp"}},
		Mounts: []sandbox.Mount{{Source: a.path("workspace"), Target: workdir, Kind: sandbox.MountWorkspace, Enclosed: a.Copies}},
	}
	if !a.Copies {
		s.Mounts = append(s.Mounts, a.readOnlyMount())
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func (a *arena) readOnlyMount() sandbox.Mount {
	return sandbox.Mount{Source: a.path("readonly"), Target: "/agent", ReadOnly: true, Kind: sandbox.MountAgent}
}

// cell is a running sandbox.
type cell struct {
	*arena
	spec     *sandbox.Spec
	instance sandbox.Instance
	machine  *machine.Machine
}

// in is the arena for another test. A home that was given serves it.
func (a *arena) in(t *testing.T, home *cell) *arena {
	t.Helper()
	here := *a
	here.t, here.home = t, home
	return &here
}

// start makes a sandbox run, or returns the home if it is to be as usual.
func (a *arena) start(changes ...func(*sandbox.Spec)) *cell {
	a.t.Helper()
	if a.home != nil && len(changes) == 0 {
		return a.atHome()
	}
	c, err := a.tryStart(a.spec(changes...))
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// atHome is the home for this test.
func (a *arena) atHome() *cell {
	return &cell{a, a.home.spec, a.home.instance, a.home.machine}
}

func (a *arena) tryStart(spec *sandbox.Spec) (*cell, error) {
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	inst, err := a.runtime.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := inst.Start(ctx); err != nil {
		return nil, err
	}
	return a.enter(spec, inst), nil
}

func (a *arena) enter(spec *sandbox.Spec, inst sandbox.Instance) *cell {
	m := machine.New(inst.Dial, &machine.Options{Kill: inst.Kill, DialTimeout: patience})
	a.t.Cleanup(func() { _ = m.Close() })
	return &cell{a, spec, inst, m}
}

// attack makes one inside, and returns what it printed and how it ended.
func (c *cell) attack(args ...string) (string, *machine.Result) {
	c.t.Helper()
	out, result, err := c.attackIn(workdir, args...)
	if err != nil {
		c.t.Fatalf("%s could not be tried: %v\n%s", args[0], err, out)
	}
	return out, result
}

func (c *cell) attackIn(dir string, args ...string) (string, *machine.Result, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	result, err := c.machine.Exec(ctx, &machine.Command{
		Argv: append([]string{program}, args...), Dir: dir, Stdout: &out, Stderr: &out, OutputLimit: 1 << 20, EndTree: true,
	})
	return out.String(), result, err
}

// refused makes an attack of which no step may work.
func (c *cell) refused(args ...string) {
	c.t.Helper()
	out, result := c.attack(args...)
	c.t.Logf("inside:\n%s", out)
	if result.ExitCode != 0 {
		c.t.Errorf("attack %s ended with %d: 1 is a step that worked, 2 one that could not be tried", args[0], result.ExitCode)
	}
}

// answers checks that the guest still serves.
func (c *cell) answers() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	if err := c.machine.Ping(ctx); err != nil {
		c.t.Errorf("the guest does not answer any more: %v", err)
	}
}

// alive checks that it can start programs, too.
func (c *cell) alive() {
	c.t.Helper()
	c.answers()
	if _, result, err := c.attackIn("/", "child"); err != nil || result.ExitCode != 0 {
		c.t.Errorf("a program cannot be run any more: %v", err)
	}
}

// canaryProcess is a process of the host that attackers try to reach, of the
// sandbox's user where that can be, so that only walls are between them.
func (a *arena) canaryProcess() *exec.Cmd {
	a.t.Helper()
	cmd := exec.CommandContext(a.t.Context(), "sleep", "1000")
	cmd.Cancel = func() error { return cmd.Process.Kill() }
	if uid, gid, ok := strings.Cut(a.User, ":"); ok && os.Geteuid() == 0 {
		u, errU := strconv.ParseUint(uid, 10, 32)
		g, errG := strconv.ParseUint(gid, 10, 32)
		if err := errors.Join(errU, errG); err != nil {
			a.t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u), Gid: uint32(g)}}
	}
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

// wantAlive checks that a process was not ended.
func (a *arena) wantAlive(cmd *exec.Cmd) {
	a.t.Helper()
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		a.t.Errorf("the canary process is gone: %v", err)
	}
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
	if _, rest, _ := strings.Cut(string(stat), ") "); rest == "" || rest[0] == 'Z' {
		a.t.Errorf("the canary process has ended: %s", stat)
	}
}

// canarySocket listens at a name without a file, and counts who comes.
func (a *arena) canarySocket() (name string) {
	a.t.Helper()
	name = "atoll-canary-" + rand.Text()
	a.listen("@" + name)
	return name
}

// listen makes a unix socket of the host.
func (a *arena) listen(address string) {
	a.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(a.t.Context(), "unix", address)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = listener.Close() })
}

// wantCanary checks that the canary file is as it was, and alone.
func (a *arena) wantCanary(dir string) {
	a.t.Helper()
	text, err := os.ReadFile(a.path(dir + "/canary"))
	if err != nil || string(text) != canaryWords {
		a.t.Errorf("the canary says %q, %v", text, err)
	}
	if entries, err := os.ReadDir(a.path(dir)); err != nil || len(entries) != 1 {
		a.t.Errorf("beside the canary is something: %v, %v", entries, err)
	}
}
