package docker

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The lab: a runtime on a real engine, whose guest is the probe of testdata.
type lab struct {
	*Runtime
	options Options
}

// onEach runs a test on both engines.
func onEach(t *testing.T, test func(*testing.T, *lab)) {
	t.Helper()
	t.Run("docker", func(t *testing.T) { test(t, newLab(t, enginetest.Docker(t), Docker)) })
	t.Run("podman", func(t *testing.T) { test(t, newLab(t, enginetest.Podman(t), Podman)) })
}

func newLab(t testing.TB, host string, flavor Flavor, changes ...func(*Options)) *lab {
	t.Helper()
	o := Options{
		Host: host, Flavor: flavor, Installation: "test-" + rand.Text(), StateDir: t.TempDir(),
		Guest: func(string) ([]byte, error) { return probe() },
	}
	for _, change := range changes {
		change(&o)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{r, o}
	t.Cleanup(func() { l.clear(t); _ = r.Close() })
	return l
}

// clear removes every container that a test left.
func (l *lab) clear(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	left, err := l.List(ctx)
	if err != nil {
		return // the engine was the test's own and is gone
	}
	for _, s := range left {
		if err := l.discard(ctx, s.ID); err != nil {
			t.Errorf("container %s is left: %v", s.Name, err)
		}
	}
}

// probe is the program of testdata/probe, built once.
var probe = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "atoll-probe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "probe"), "./testdata/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return out, err
	}
	return os.ReadFile(filepath.Join(dir, "probe"))
})

// spec is a small sandbox under a name of its own.
func (l *lab) spec(changes ...func(*sandbox.Spec)) *sandbox.Spec {
	s := &sandbox.Spec{
		Name: "atoll-test-" + strings.ToLower(rand.Text()[:12]), ScopeKey: "agent:test", AgentID: "test",
		Backend: string(l.options.Flavor), ConfigHash: "hash", Image: enginetest.TinyImage, Workdir: "/", User: "1234:1234",
		ReadOnlyRoot: true, Network: "none", CapDrop: []string{"ALL"}, Tmpfs: []sandbox.Tmpfs{{Target: "/tmp"}},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

// start makes a sandbox and runs it.
func (l *lab) start(t testing.TB, changes ...func(*sandbox.Spec)) *Instance {
	t.Helper()
	i, err := l.Create(t.Context(), l.spec(changes...))
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i.(*Instance)
}

type probeAnswer struct {
	Output string
	Code   int
}

// tell asks the probe in a sandbox for something.
func tell(t *testing.T, i sandbox.Instance, question any) probeAnswer {
	t.Helper()
	conn, err := i.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return talk(t, conn, question)
}

func talk(t *testing.T, conn net.Conn, question any) (answer probeAnswer) {
	t.Helper()
	// A probe that never answers is one failed test, not a suite that stands still.
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(append(text, '\n')); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// run runs a command inside and gives back its trimmed output; it must succeed.
func run(t *testing.T, i sandbox.Instance, argv ...string) string {
	t.Helper()
	a := tell(t, i, map[string]any{"argv": argv})
	if a.Code != 0 {
		t.Fatalf("%q ended with %d: %s", argv, a.Code, a.Output)
	}
	return strings.TrimSpace(a.Output)
}

// sh runs a shell line inside, as run does.
func sh(t *testing.T, i sandbox.Instance, line string) string {
	t.Helper()
	return run(t, i, "/bin/sh", "-c", line)
}
