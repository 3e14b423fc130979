package openclawtest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/buildtest"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/openclawtest"
)

// fixture is one OpenClaw on Atoll's docker.
type fixture struct {
	*testing.T
	peer  *openclawtest.Peer
	home  *openclawtest.Home
	model *fakellm.Server
}

// programsDir is where programs are built; TestMain makes and removes it.
var programsDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "atoll")
	if err != nil {
		panic(err)
	}
	programsDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// build builds atoll and atoll-docker as `make build` does, once for all tests.
var build = sync.OnceValue(func() error {
	return buildtest.Programs(context.Background(), programsDir, "atoll", "atoll-docker")
})

// programs returns the directory with the programs.
func programs(t *testing.T) string {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return programsDir
}

func newDesk(t *testing.T, version, access string, script fakellm.Script) *fixture {
	t.Helper()
	need.Root(t, "OpenClaw starts in a mount namespace")
	peer, err := openclawtest.Find(version, os.Getenv)
	if err != nil {
		need.Missing(t, err)
	}
	model, err := fakellm.Listen(t.Context(), "tcp", "127.0.0.1:0", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() })
	state := filepath.Join(t.TempDir(), "state")
	home := &openclawtest.Home{
		Dir: t.TempDir(), Docker: filepath.Join(programs(t), "atoll-docker"), Model: model.BaseURL(),
		Env: []string{"ATOLL_STATE_DIR=" + state, "DOCKER_HOST=" + enginetest.Docker(t)},
	}
	if err := home.Prepare(access); err != nil {
		t.Fatal(err)
	}
	d := &fixture{t, peer, home, model}
	t.Cleanup(d.clear)
	d.importImage()
	return d
}

// importImage takes OpenClaw's image in, so that its sandboxes need no engine.
func (d *fixture) importImage() {
	d.Helper()
	cmd := exec.CommandContext(d.Context(), filepath.Join(filepath.Dir(d.home.Docker), "atoll"), "images", "import", "--from-docker", enginetest.Image)
	cmd.Env = append(os.Environ(), d.home.Env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.Fatalf("import of %s: %v\n%s", enginetest.Image, err, out)
	}
}

// docker runs one line on the front end that OpenClaw uses.
func (d *fixture) docker(args ...string) string {
	d.Helper()
	cmd := exec.Command(d.home.Docker, args...)
	cmd.Env = append(os.Environ(), d.home.Env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.Errorf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// clear removes every container, whatever became of the test.
func (d *fixture) clear() {
	for id := range strings.FieldsSeq(d.docker("ps", "-aq")) {
		d.docker("rm", "-f", id)
	}
}

func (d *fixture) openclaw(args ...string) string {
	d.Helper()
	out, err := d.peer.Run(d.Context(), d.home, args...)
	if err != nil {
		d.Fatalf("%v\nthe model: %v", err, d.model.Err())
	}
	return out
}

// turns works with every tool that reaches into a sandbox; each turn expects
// the result of the one before.
func turns(edit string) fakellm.Script {
	after := func(result string, turn fakellm.Turn) fakellm.Turn {
		turn.When = result
		return turn
	}
	return fakellm.Script{
		fakellm.Use("exec", `{"command":"echo from $(hostname); test -e /.atoll && echo in a sandbox"}`),
		after("in a sandbox", fakellm.Use("write", `{"path":"notes/a.txt","content":"hello\nworld\n"}`)),
		after("Successfully wrote", fakellm.Use("read", `{"path":"notes/a.txt"}`)),
		after("hello\nworld", fakellm.Use("edit", edit)),
		after("Successfully replaced", fakellm.Use("exec", `{"command":"cat notes/a.txt; cat /proc/self/status | grep -i capeff"}`)),
		after("hello\natoll", fakellm.Say("all done")),
	}
}

// versionVariable names the OpenClaw to test, instead of the current one: what
// `make test-openclaw OPENCLAW=…` installs and sets.
const versionVariable = "ATOLL_TEST_OPENCLAW"

// dialect is how a version differs from others, as far as the suite sees it.
type dialect struct {
	access string // to the workspace: the earlier version writes only in its own
	edit   string // the arguments of its edit tool
}

func dialectOf(version string) dialect {
	if version == openclawtest.Earlier {
		return dialect{"rw", `{"path":"notes/a.txt","oldText":"world","newText":"atoll"}`}
	}
	return dialect{"none", `{"path":"notes/a.txt","edits":[{"oldText":"world","newText":"atoll"}]}`}
}

// The real OpenClaw works in a sandbox of Atoll's with every tool that it has
// for that, finds the sandbox again, explains it and takes it away.
func TestOpenClawWorksInASandbox(t *testing.T) {
	version := cmp.Or(os.Getenv(versionVariable), openclawtest.Current)
	speaks := dialectOf(version)
	d := newDesk(t, version, speaks.access, turns(speaks.edit))
	out := d.openclaw("agent", "--local", "--agent", "main", "--message", "work", "--json")
	if err := d.model.Err(); err != nil || !strings.Contains(out, "all done") {
		t.Fatalf("the turn did not go as scripted: %v\n%s", err, out)
	}
	last := d.model.Requests()[len(d.model.Requests())-1].Last()
	if !strings.Contains(last, "CapEff:\t0000000000000000") {
		t.Errorf("the sandbox has capabilities: %s", last)
	}
	name := d.docker("ps", "--format", "{{.Names}}")
	if !strings.HasPrefix(name, "openclaw-sbx-") {
		t.Fatalf("one container of OpenClaw's should run, found %q", name)
	}
	if driver := d.docker("inspect", "-f", "{{.Driver}}", name); driver != "atoll-linux" {
		t.Errorf("the sandbox was made by %s, want no engine", driver)
	}
	d.checkList(name)
	if out := d.openclaw("sandbox", "explain", "--json"); !strings.Contains(out, `"sessionIsSandboxed": true`) {
		t.Errorf("explain does not say that the session is sandboxed: %s", out)
	}
	d.openclaw("sandbox", "recreate", "--all", "--force")
	if left := d.docker("ps", "-aq"); left != "" {
		t.Errorf("recreate left containers: %s", left)
	}
}

func (d *fixture) checkList(name string) {
	d.Helper()
	var list struct {
		Containers []struct {
			ContainerName string `json:"containerName"`
			Running       bool   `json:"running"`
			ImageMatch    bool   `json:"imageMatch"`
		} `json:"containers"`
	}
	out := d.openclaw("sandbox", "list", "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		d.Fatalf("sandbox list: %v\n%s", err, out)
	}
	if len(list.Containers) != 1 || list.Containers[0].ContainerName != name || !list.Containers[0].Running || !list.Containers[0].ImageMatch {
		d.Errorf("sandbox list shows %+v, want %s running", list.Containers, name)
	}
}
