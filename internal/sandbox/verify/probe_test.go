package verify_test

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/verify"
	"github.com/atoll-run/atoll/internal/testkit/guestbuild"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/sandboxtest"
	"github.com/atoll-run/atoll/internal/wire/findings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A sandbox without walls: the probe works there, and finds that they are
// missing. A verification that cannot fail would pass.
func TestNoWallsAreNoticed(t *testing.T) {
	need.Root(t, "others have fewer walls to lack")
	state, err := os.MkdirTemp("", "atoll") //nolint:usetesting // a short path, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	spec := &sandbox.Spec{Name: "bare", Image: sandboxtest.BareImage, Backend: "linux", User: "1:1", ReadOnlyRoot: true, Network: "none", CapDrop: []string{"ALL"}}
	inst, err := sandboxtest.NewBare(t, state).Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inst.Remove(context.WithoutCancel(t.Context())) })
	if err := inst.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := machine.New(inst.Dial, nil)
	defer m.Close()
	report, err := verify.Probe(t.Context(), m, guestbuild.Build(t))
	if err != nil {
		t.Fatal(err)
	}
	info, err := m.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantOpen(t, report)
	spec.Mounts = []sandbox.Mount{{Target: "/workspace"}} // only then set-user-ID files are promised about
	checks := verify.Checks(&verify.Evidence{Spec: spec, Inside: report, Guest: verify.Guest{PID: info.PID, Dumpable: info.Dumpable}, Host: verify.HostNamespaces()})
	var broken []string
	for _, c := range checks {
		t.Logf("%-5s %-13s %-42s %s | %s", c.Status, c.Ring, c.Name, c.Promised, c.Found)
		if c.Status == verify.Gap {
			broken = append(broken, c.Ring+": "+c.Name)
		}
	}
	for _, want := range []string{"user: user and group", "privileges: capabilities", "system calls: refused calls", "system calls: set-user-ID and set-group-ID", "namespaces: namespaces",
		"files: what belongs to the machine", "files: root", "files: writable places", "mounts: others", "network: interfaces",
		"guest: tracing, memory, descriptors, limits, priority", "guest: the probe's report", "devices: devices"} {
		if !slices.Contains(broken, want) {
			t.Errorf("%s is not among the gaps", want)
		}
	}
	for _, holds := range []string{"processes: process 1", "guest: dumpable", "system calls: usual calls"} {
		if slices.Contains(broken, holds) {
			t.Errorf("%s is among the gaps, but holds also without walls", holds)
		}
	}
}

// liar is a sandbox whose probe answers what it likes.
type liar struct {
	says string
	code int
	err  error
}

func (l liar) Exec(_ context.Context, c *machine.Command) (*machine.Result, error) {
	_, _ = io.WriteString(c.Stdout, l.says)
	return &machine.Result{ExitCode: l.code}, l.err
}

func TestHostileAnswers(t *testing.T) {
	for name, l := range map[string]liar{
		"nothing":        {},
		"no JSON":        {says: "all is well"},
		"other types":    {says: `{"self":{"pid":"one"}}`},
		"half a report":  {says: `{"self":{"pid":1},`},
		"failure":        {says: `{}`, code: 1},
		"a broken wire":  {err: errors.New("broken")},
		"far too deeply": {says: strings.Repeat("[", 20000)},
	} {
		if _, err := verify.Probe(t.Context(), l, "/guest"); err == nil {
			t.Errorf("%s: believed", name)
		}
	}
	report, err := verify.Probe(t.Context(), liar{says: `{"self":{"seccomp":2}}`}, "/guest")
	if err != nil {
		t.Fatal(err)
	}
	if verify.Holds(verify.Checks(&verify.Evidence{Spec: &sandbox.Spec{CapDrop: []string{"ALL"}, Network: "none"}, Inside: report})) {
		t.Error("a report that tells nothing passed")
	}
}

// Whatever a sandbox answers, judging it neither fails nor takes long.
func FuzzJudge(f *testing.F) {
	f.Add(`{"self":{"capabilities":{"CapEff":"zz"}},"mounts":[{"target":""}],"network":{"reach":[{"name":"::1"}]},"devices":[{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		report, err := verify.Probe(t.Context(), liar{says: text}, "/guest")
		if err != nil {
			return
		}
		spec := &sandbox.Spec{User: "1:1", ReadOnlyRoot: true, Network: "none", CapDrop: []string{"ALL"}, Tmpfs: []sandbox.Tmpfs{{Target: "/tmp"}}}
		checks := verify.Checks(&verify.Evidence{Spec: spec, Inside: report, Host: verify.HostNamespaces()})
		for _, c := range checks {
			if len(c.Found) > 1<<10 {
				t.Errorf("%s: %d bytes found", c.Name, len(c.Found))
			}
		}
	})
}

// wantOpen checks single probes: each finds open what this host leaves open.
func wantOpen(t *testing.T, report *findings.Report) {
	t.Helper()
	answers := map[string]string{}
	for _, a := range slices.Concat(report.Calls, report.Modes, report.Paths) {
		answers[a.Name] = a.Error
	}
	for _, name := range []string{"socket packet", "socket can", "socket tipc", "socketpair tipc", "fchmod set-user-ID", "fchmod set-group-ID", "openat", "openat2", "mknodat"} {
		if answer, tried := answers[name]; !tried || answer == "EPERM" && os.Geteuid() == 0 || answer == "ENOSYS" {
			t.Errorf("%s: %q where nothing refuses it (tried: %v)", name, answer, tried)
		}
	}
	for path, name := range map[string]string{"/proc/pressure/memory": "write /proc/pressure/memory", "/proc/pressure/io": "read /proc/pressure/io", "/sys/kernel/slab": "read /sys/kernel/slab"} {
		if _, err := os.Stat(path); err == nil && answers[name] != "" {
			t.Errorf("%s: %q where nothing refuses it", name, answers[name])
		}
	}
}
