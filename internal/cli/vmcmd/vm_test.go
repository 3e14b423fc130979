//go:build linux

package vmcmd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/cli/vmcmd"
	"github.com/atoll-run/atoll/internal/contexts"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/testkit/buildtest"
	"github.com/atoll-run/atoll/internal/testkit/limatest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

func TestMain(m *testing.M) {
	if limatest.Called() {
		os.Exit(limatest.Main(os.Args[1:]))
	}
	if os.Getenv(macVariable) != "" {
		os.Exit(onMac())
	}
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// program builds the program that is installed inside, once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "vmcmd")
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "atoll"), buildtest.Programs(context.Background(), dir, "atoll")
})

// mac is a machine with Lima, a project and a home directory.
type mac struct {
	*testing.T
	home string
	env  map[string]string
}

// newMac returns a machine whose limactl is the stand-in.
func newMac(t *testing.T) *mac {
	t.Helper()
	need.Root(t, "virtual machines of the stand-in are mount namespaces")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &mac{t, filepath.Join(dir, "home"), map[string]string{"ATOLL_STATE_DIR": filepath.Join(dir, "state")}}
	for _, d := range []string{"home/project/src", "home/.openclaw/agents", "home/plugins/cadence", "lima", "bin"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.file("project/main.go", "package main\n", 0o644)
	m.file(".openclaw-secrets.env", "# keys\nexport ANTHROPIC_API_KEY=sk-test-1234\n", 0o600)
	m.file("plugins/cadence/step.json5", `{name: "cadence", needs: ["gateway"], check: "check.sh", apply: "apply.sh"}`, 0o644)
	m.file("plugins/cadence/check.sh", "[ -e /var/lib/cadence ]\n", 0o644)
	m.file("plugins/cadence/apply.sh", "mkdir -p /var/lib/cadence\n", 0o644)
	if err := limatest.Install(filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := limatest.End(filepath.Join(dir, "lima")); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv(limatest.HomeVariable, filepath.Join(dir, "lima"))
	t.Setenv(limatest.VersionVariable, "2.1.0")
	return m
}

func (m *mac) file(name, text string, mode os.FileMode) {
	m.Helper()
	path := filepath.Join(m.home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		m.Fatal(err)
	}
}

type exitCode int

func (e exitCode) Error() string { return fmt.Sprint("exit ", int(e)) }

// vm runs `atoll vm` and returns everything that it said.
func (m *mac) vm(in string, args ...string) (string, error) {
	m.Helper()
	var out bytes.Buffer
	cmd := vmcmd.New(m.host(in, &out))
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(m.Context())
	return out.String(), err
}

func (m *mac) host(in string, out io.Writer) *vmcmd.Host {
	return &vmcmd.Host{
		In: strings.NewReader(in), Out: out, Err: out, Getenv: func(name string) string { return m.env[name] }, Home: m.home, System: "linux", Arch: runtime.GOARCH,
		Config: func() string { return "" }, Exit: func(code int) error { return exitCode(code) },
	}
}

// must is vm for what must work, with texts that it must say.
func (m *mac) must(want string, args ...string) string {
	m.Helper()
	out, err := m.vm("", args...)
	if err != nil || !strings.Contains(out, want) {
		m.Fatalf("vm %s: %v (%s)\n%s\nwant %q", strings.Join(args, " "), err, errhint.Of(err), out, want)
	}
	return out
}

// refused is vm for what must fail for a reason.
func (m *mac) refused(want string, args ...string) {
	m.Helper()
	out, err := m.vm("", args...)
	if err == nil || !strings.Contains(err.Error(), want) {
		m.Errorf("vm %s: %v\n%s\nwant %q", strings.Join(args, " "), err, out, want)
	}
}

// configure writes the profile with further keys.
func (m *mac) configure(keys string) {
	m.Helper()
	state := m.env["ATOLL_STATE_DIR"]
	if err := os.MkdirAll(state, 0o700); err != nil {
		m.Fatal(err)
	}
	atoll, err := program()
	if err != nil {
		m.Fatal(err)
	}
	text := fmt.Sprintf("{vm: {defaults: {program: '"+atoll+"'}, profiles: {work: {mounts: {project: '~/project', provision: '~/plugins'}, secrets: '~/.openclaw-secrets.env', port: %d, roles: {ghCli: false, cadence: true}, %s}}}}", freePort(m.T), keys)
	m.writeConfig(text)
}

// writeConfig writes the configuration file.
func (m *mac) writeConfig(text string) {
	m.Helper()
	if err := os.WriteFile(filepath.Join(m.env["ATOLL_STATE_DIR"], "atoll.json5"), []byte(text), 0o600); err != nil {
		m.Fatal(err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// A virtual machine is made, set up, set up again without a change, and removed; its
// steps run for real in a root of their own.
func TestLifeOfAVirtualMachine(t *testing.T) {
	m := newMac(t)
	m.configure("mode: 'overlay'")
	m.refused("there is no virtual machine", "shell", "true")
	out := m.must("mounts        2 of 2 as declared", "up")
	for _, want := range []string{"✓ limactl 2.1.0", "secrets     ✓  changed", "docker      –  not needed", "gateway     ✓  changed", "firewall    ✓  changed", "cadence     ✓  changed", "sync-gate   ✓"} {
		if !strings.Contains(out, want) {
			t.Errorf("up does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "sk-test") {
		t.Error("up prints a secret")
	}
	m.must("nothing to change", "up")
	m.inside()
	m.must("as declared", "status")
	m.must(filepath.Join(m.env["ATOLL_STATE_DIR"], "vm", "work", "lima.yaml"), "status")
	m.hinted("OpenClaw is not part of this profile", "set openclaw: true", "onboard")
	m.must(`"state":"running"`, "status", "--json")
	if _, err := m.vm("", "shell", "sh", "-c", "exit 7"); !errors.Is(err, exitCode(7)) {
		t.Errorf("the exit code is lost: %v", err)
	}
	m.forwards()
	m.must("", "down")
	m.must("stopped already", "down")
	m.refused("nobody can say whether changes wait", "delete")
	m.must("", "up")
	m.must("", "shell", "sh", "-c", "echo x >/var/lib/openclaw/overlay/openclaw/upper/new")
	m.refused("changes wait in it: /var/lib/openclaw/overlay/openclaw/upper/new", "delete")
	m.must("", "delete", "--discard")
	m.must("none", "status")
	if all, err := contexts.Load(m.env["ATOLL_STATE_DIR"]); err != nil || len(all.Contexts) != 0 {
		t.Errorf("the context is left: %v %v", all, err)
	}
}

// inside looks at what the steps made.
func (m *mac) inside() {
	m.Helper()
	m.must("/workspace\n", "shell", "pwd")
	m.must("600 root ANTHROPIC_API_KEY=sk-test-1234", "shell", "sh", "-c", "echo $(stat -c '%a %U' /etc/atoll/gateway.env) $(cat /etc/atoll/gateway.env)")
	m.must("package main", "shell", "cat", "/mnt/openclaw/main.go")
	if _, err := m.vm("", "shell", "touch", "/mnt/openclaw/x"); err == nil {
		m.Error("the project is writable inside")
	}
	m.must("WorkingDirectory=/workspace", "shell", "cat", "/etc/systemd/system/atoll-gateway.service.d/vm.conf")
	m.must("lowerdir=/mnt/openclaw,upperdir=/var/lib/openclaw/overlay/openclaw/upper", "shell", "cat", "/etc/systemd/system/workspace.mount")
	m.must("", "shell", "grep", "-qx", "atoll-gateway.service", "/var/lib/limatest/restarts")
	m.must("", "shell", "test", "-x", "/usr/local/bin/atoll")
}

// forwards runs a verb of atoll inside, in the directory of the project, with the token's
// context in place.
func (m *mac) forwards() {
	m.Helper()
	all, err := contexts.Load(m.env["ATOLL_STATE_DIR"])
	if err != nil || all.Current != "atoll-work" || all.Contexts["atoll-work"].Token == "" {
		m.Errorf("%+v %v", all, err)
	}
	m.must("", "down")
	m.Chdir(filepath.Join(m.home, "project", "src"))
	var out bytes.Buffer
	host := m.host("", &out)
	if !vmcmd.Forwards(host, "claude") || vmcmd.Forwards(host, "billing") {
		m.Error("the wrong verbs are forwarded")
	}
	if err := vmcmd.Forward(m.Context(), host, []string{"version"}); err != nil || !strings.Contains(out.String(), "\natoll ") {
		m.Errorf("%v %s", err, out.String())
	}
	if err := vmcmd.Forward(m.Context(), host, []string{"nonsense"}); !errors.Is(err, exitCode(2)) {
		m.Errorf("%v %s", err, out.String())
	}
	m.Chdir(m.home)
	if err := vmcmd.Forward(m.Context(), host, []string{"version"}); err == nil || !strings.Contains(err.Error(), "is not in the project") {
		m.Error(err)
	}
}

// drift changes the profile of a virtual machine that runs.
func (m *mac) drift() {
	m.Helper()
	path := filepath.Join(m.env["ATOLL_STATE_DIR"], "atoll.json5")
	text, err := os.ReadFile(path)
	if err != nil {
		m.Fatal(err)
	}
	m.env["VM_CPUS"] = "7"
	m.must("it has 4 CPUs, the profile 7: `atoll vm down`, `limactl edit --cpus=7 atoll-work`", "up")
	delete(m.env, "VM_CPUS")
	if err := os.WriteFile(path, bytes.Replace(text, []byte("'overlay'"), []byte("'direct'"), 1), 0o600); err != nil {
		m.Fatal(err)
	}
	m.hinted("/mnt/openclaw is read-only in it and writable in the profile", "then `atoll vm delete` and `atoll vm up`", "up")
	m.must("/mnt/openclaw is read-only inside and writable in the profile", "status")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		m.Fatal(err)
	}
}

func TestInit(t *testing.T) {
	m := newMac(t)
	out, err := m.vm(filepath.Join(m.home, "project")+"\ny\n", "init")
	if err != nil || !strings.Contains(out, "+++ ") || !strings.Contains(out, `"secrets": "~/.openclaw-secrets.env"`) {
		t.Fatalf("%v %s", err, out)
	}
	path := filepath.Join(m.env["ATOLL_STATE_DIR"], "atoll.json5")
	before, _ := os.ReadFile(path)
	m.must("has this profile already", "init", "--yes", "--project", "~/project")
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Errorf("twice is not once: %s", after)
	}
	if err := os.WriteFile(path, []byte("{\n  // mine\n  agents: {}, // keep\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.must("", "init", "--yes", "--project", "~/project", "--profile", "other")
	if after, _ := os.ReadFile(path); !strings.Contains(string(after), "// mine\n  agents: {}, // keep\n") {
		t.Errorf("%s", after)
	}
	m.must("vm.profiles.other.mounts.project", "profile")
	m.refused("no project is named", "init", "--yes")
	m.refused("nobody answered", "init")
	if out, err := m.vm("\nn\n", "init", "--profile", "third"); err == nil || !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("%v %s", err, out)
	}
}
