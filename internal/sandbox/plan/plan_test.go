package plan_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// fixture is where a plan is made: a home without anything in it, and a file.
type fixture struct {
	t    *testing.T
	home string
}

func newDesk(t *testing.T) *fixture { return &fixture{t, t.TempDir()} }

func (d *fixture) path(name string) string { return filepath.Join(d.home, name) }

// request reads a configuration, in which %s is the home.
func (d *fixture) request(text string) plan.Request {
	d.t.Helper()
	env := config.Environment{Home: d.home, Cwd: d.home}
	cfg, err := config.Parse(d.path("atoll.json5"), []byte(strings.ReplaceAll(text, "%s", d.home)), env)
	if err != nil {
		d.t.Fatal(err)
	}
	paths, err := env.Paths()
	if err != nil {
		d.t.Fatal(err)
	}
	return plan.Request{Config: cfg, Paths: paths, Getenv: func(string) string { return "" }}
}

func (d *fixture) plan(text string) *plan.Plan {
	d.t.Helper()
	p, err := plan.Make(d.request(text))
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

func (d *fixture) mkdir(name string) string {
	d.t.Helper()
	if err := os.MkdirAll(d.path(name), 0o755); err != nil {
		d.t.Fatal(err)
	}
	return d.path(name)
}

// A plan is only a plan: whatever it says, nothing on the disk changes.
func TestMakeCreatesNothing(t *testing.T) {
	for _, access := range []string{"none", "ro", "rw"} {
		d := newDesk(t)
		p := d.plan(fmt.Sprintf(`{agents: {defaults: {sandbox: {workspaceAccess: %q}}}}`, access))
		if p.Spec == nil || len(p.Spec.Mounts) == 0 {
			t.Errorf("%s: nothing was planned: %+v", access, p)
		}
		if left, err := os.ReadDir(d.home); len(left) != 0 || err != nil {
			t.Errorf("%s: %v, %v", access, left, err)
		}
	}
}

// A private copy has limits also if nobody set any; a workspace that is used
// itself has those that were set.
func TestRoomOfWorkspaces(t *testing.T) {
	for name, c := range map[string]struct {
		access, docker string
		want           sandbox.WorkspaceQuota
	}{
		"a copy":                {"none", "", sandbox.WorkspaceQuota{Size: plan.CopySize, Files: plan.CopyFiles, Reserve: plan.CopyReserve}},
		"a copy with a size":    {"none", "workspaceLimit: {size: '1g'}", sandbox.WorkspaceQuota{Size: 1 << 30, Files: plan.CopyFiles, Reserve: plan.CopyReserve}},
		"the workspace":         {"rw", "", sandbox.WorkspaceQuota{}},
		"the workspace, so far": {"rw", "workspaceLimit: {size: '1g', files: 10}", sandbox.WorkspaceQuota{Size: 1 << 30, Files: 10}},
	} {
		p := newDesk(t).plan(fmt.Sprintf(`{agents: {defaults: {sandbox: {workspaceAccess: %q, docker: {%s}}}}}`, c.access, c.docker))
		if got := p.Spec.Limits.Workspace; got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestSpecSaysWhatTheFileSays(t *testing.T) {
	need.Root(t, "it gives a directory away")
	d := newDesk(t)
	work := d.mkdir("work")
	if err := os.Chown(work, 1234, 2345); err != nil {
		t.Fatal(err)
	}
	p := d.plan(`{agents: {defaults: {workspace: "%s/work", sandbox: {workspaceAccess: "rw", docker: {
		image: "img:1", containerPrefix: "p-", workdir: "/w", readOnlyRoot: false, tmpfs: ["/tmp:size=1m", "/run"], network: "bridge",
		capDrop: ["NET_RAW"], env: {A: "b", MY_API_KEY: "secret"}, setupCommand: ["a", "b"], pidsLimit: 7, memory: "64m", memorySwap: "-1",
		cpus: 1.5, ulimits: {nofile: {soft: 1, hard: 2}, core: 0}, dns: ["192.0.2.53"], extraHosts: ["x:192.0.2.1"],
	}}}}}`)
	want := &sandbox.Spec{
		Name: p.Spec.Name, ScopeKey: "agent:main", AgentID: "main", ConfigHash: p.Spec.ConfigHash, MountsHash: p.Spec.MountsHash, Settings: p.Spec.Settings, MaxAgeSec: 7 * 24 * 60 * 60,
		Image: "img:1", Workdir: "/w", User: "1234:2345", Env: map[string]string{"A": "b"}, SetupCommand: p.Agent.Sandbox.Docker.SetupCommand,
		Tmpfs: []sandbox.Tmpfs{{Target: "/tmp", Options: "size=1m"}, {Target: "/run"}}, Network: "bridge", CapDrop: []string{"NET_RAW"},
		DNS: []string{"192.0.2.53"}, ExtraHosts: []string{"x:192.0.2.1"},
		Mounts: []sandbox.Mount{{Source: work, Target: "/w", Kind: sandbox.MountWorkspace}},
		Limits: sandbox.Limits{Pids: 7, Memory: 64 << 20, MemorySwap: -1, CPUs: 1.5, Ulimits: []sandbox.Ulimit{{Name: "core"}, {Name: "nofile", Soft: 1, Hard: 2}}},
	}
	if diff := cmp.Diff(want, p.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(p.Spec.Name, "p-agent-main") || p.Spec.ConfigHash == "" || p.Spec.MountsHash == "" {
		t.Errorf("name %q, hashes %q and %q", p.Spec.Name, p.Spec.ConfigHash, p.Spec.MountsHash)
	}
	if len(p.Env.Blocked) != 1 || p.Env.Blocked[0].Name != "MY_API_KEY" {
		t.Errorf("blocked %+v", p.Env.Blocked)
	}
}

// What policy refuses is told at once, all of it, and stops nothing from being
// explained.
func TestRefusalTellsEverything(t *testing.T) {
	d := newDesk(t)
	d.mkdir("work")
	p := d.plan(`{agents: {defaults: {workspace: "%s/work", sandbox: {docker: {
		binds: ["/etc:/mnt/etc:ro", "/proc:/mnt/proc", "%s/.atoll/atoll.db:/mnt/db"], setupCommand: "apt-get update",
	}}}}}`)
	err := p.Refusal()
	if !errors.Is(err, sandbox.ErrDenied) || errhint.Of(err) == "" {
		t.Fatalf("%v (hint: %s)", err, errhint.Of(err))
	}
	for _, subject := range []string{"/etc", "/proc", "atoll.db", "setupCommand"} {
		if !strings.Contains(err.Error(), subject) {
			t.Errorf("%q is not told in\n%v", subject, err)
		}
	}
	if p.Spec == nil || p.Spec.Name == "" {
		t.Error("there is nothing to explain")
	}
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*plan.Request)
		want   string
	}{
		"a session of another agent": {func(r *plan.Request) { r.AgentID, r.SessionKey = "a", "agent:b:x" }, `belongs to agent "b"`},
		"an unknown agent":           {func(r *plan.Request) { r.AgentID = "c" }, "not configured"},
		"a session that is no text":  {func(r *plan.Request) { r.SessionKey = "agent:a:\xff" }, "UTF-8"},
		"an account that is no text": {func(r *plan.Request) { r.Account = "\xff" }, "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDesk(t).request(`{agents: {list: [{id: "a", default: true}, {id: "b"}]}}`)
			c.change(&r)
			_, err := plan.Make(r)
			if err == nil || !strings.Contains(err.Error(), c.want) || errhint.Of(err) == "" {
				t.Errorf("%v (hint: %s), want %q", err, errhint.Of(err), c.want)
			}
		})
	}
}

// Between planning and making, somebody exchanges what is to be mounted.
func TestPinRefusesWhatWasExchanged(t *testing.T) {
	for name, c := range map[string]struct {
		exchange func(d *fixture, work string) error
		denied   bool
	}{
		"by a link": {func(d *fixture, work string) error {
			return errors.Join(os.Remove(work), os.Symlink(d.mkdir("other"), work))
		}, true},
		"by a link above it": {func(d *fixture, work string) error {
			return errors.Join(os.MkdirAll(d.path("else/work"), 0o755), os.RemoveAll(d.path("a")), os.Symlink(d.path("else"), d.path("a")))
		}, true},
		"by nothing": {func(_ *fixture, work string) error { return os.Remove(work) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			work := d.mkdir("a/work")
			p := d.plan(`{agents: {defaults: {workspace: "%s/a/work", sandbox: {workspaceAccess: "rw"}}}}`)
			if err := p.Pin(); err != nil || p.Spec.Mounts[0].Inode == 0 {
				t.Fatalf("pinned %+v, %v", p.Spec.Mounts, err)
			}
			if err := c.exchange(d, work); err != nil {
				t.Fatal(err)
			}
			if err := p.Pin(); err == nil || errors.Is(err, sandbox.ErrDenied) != c.denied {
				t.Errorf("pinned again: %v", err)
			}
		})
	}
}

// A directory below which a program of the host waits on a socket is neither
// bound nor a workspace, however deep the socket lies. One that nobody waits on
// is a file.
func TestSocketsOfTheHostAreRefused(t *testing.T) {
	d := newDesk(t)
	deep := d.mkdir("work/a/b/c")
	text := `{agents: {defaults: {workspace: "%s/work", sandbox: {workspaceAccess: "rw", docker: {binds: ["%s/work/a:/a"]}}}}}`
	if p := d.plan(text); p.Refusal() != nil {
		t.Fatal(p.Refusal())
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(deep, "s"))
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	var fields []string
	for _, f := range d.plan(text).Findings {
		if !strings.Contains(f.Message, "work/a/b/c/s") || !strings.Contains(f.Hint, "Stop the program") {
			t.Errorf("%s: %s (%s)", f.Field, f.Message, f.Hint)
		}
		fields = append(fields, f.Field)
	}
	if want := []string{"sandbox.docker.binds[0]", "workspace"}; !slices.Equal(fields, want) {
		t.Errorf("refused %q, want %q", fields, want)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if p := d.plan(text); p.Refusal() != nil {
		t.Errorf("a socket that nobody waits on: %v", p.Refusal())
	}
}

// A private copy is given to numbers; what number a name has is known to the
// image alone.
func TestUserByName(t *testing.T) {
	for _, c := range []struct{ access, user, want, refused string }{
		{"none", "1000:1000", "1000:1000", ""},
		{"none", "1000", "1000", ""},
		{"none", "root", "0:0", ""},
		{"none", "node", "node", `"node" is a name`},
		{"ro", "node:node", "node:node", `"node:node" is a name`},
		{"rw", "node", "node", ""},
	} {
		p := newDesk(t).plan(fmt.Sprintf(`{agents: {defaults: {sandbox: {workspaceAccess: %q, docker: {user: %q}}}}}`, c.access, c.user))
		err := p.Refusal()
		if p.Agent.Sandbox.Docker.User != c.want || (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s, %s: user %q, %v", c.access, c.user, p.Agent.Sandbox.Docker.User, err)
		}
		if err != nil && !strings.Contains(errhint.Of(err), "Write its numbers") {
			t.Errorf("hint %q", errhint.Of(err))
		}
	}
}

// A private copy in the state directory is closed to other users; a workspace of
// the person's, and copies kept elsewhere, are not.
func TestOnlyCopiesInTheStateDirectoryAreEnclosed(t *testing.T) {
	for name, c := range map[string]struct {
		settings string
		shared   bool
	}{
		"a private copy":           {`workspaceAccess: "none"`, false},
		"a private copy, read":     {`workspaceAccess: "ro"`, false},
		"copies kept elsewhere":    {`workspaceAccess: "none", workspaceRoot: "%s/copies"`, true},
		"the workspace":            {`workspaceAccess: "rw"`, true},
		"a copy and a bind":        {`workspaceAccess: "none", docker: {dangerouslyAllowExternalBindSources: true, binds: ["%s/data:/data:rw"]}`, true},
		"a copy and a bind, read":  {`workspaceAccess: "none", docker: {dangerouslyAllowExternalBindSources: true, binds: ["%s/data:/data:ro"]}`, false},
		"a workspace in the state": {`workspaceAccess: "none", workspaceRoot: "%s/.atoll/mine"`, false},
	} {
		d := newDesk(t)
		d.mkdir("data")
		if p := d.plan(`{agents: {defaults: {workspace: "%s/work", sandbox: {` + c.settings + `}}}}`); p.Spec.WritesShared() != c.shared {
			t.Errorf("%s: %+v", name, p.Spec.Mounts)
		}
	}
}
