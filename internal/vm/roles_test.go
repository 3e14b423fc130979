//go:build linux

package vm_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config/vmkeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/testkit/buildtest"
	"github.com/atoll-run/atoll/internal/testkit/limatest"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/vm"
	"github.com/atoll-run/atoll/internal/vm/profile"
	"github.com/atoll-run/atoll/internal/vm/steps"
)

func TestMain(m *testing.M) {
	if limatest.Called() {
		os.Exit(limatest.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// machine is a virtual machine with every step on, and what it said.
type machine struct {
	*testing.T
	*vm.Manager
	world *limatest.World
	home  string
	said  bytes.Buffer
}

// newMachine returns a virtual machine that is a sandbox.
func newMachine(t *testing.T) *machine {
	t.Helper()
	need.Time(t, "it installs Docker, Node.js and OpenClaw in a sandbox")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"home/project", "home/vault", "home/claw/agents", "home/log", "home/skills", "lima", "bin"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m := &machine{T: t, home: filepath.Join(dir, "home")}
	if err := buildtest.Programs(t.Context(), filepath.Join(dir, "bin"), "atoll"); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "bin", "atoll")
	m.world = limatest.NewWorld(t, program)
	if err := limatest.Install(filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv(limatest.HomeVariable, filepath.Join(dir, "lima"))
	t.Setenv(limatest.VersionVariable, "2.1.0")
	m.Manager = &vm.Manager{
		Profile: everything(t, program), Host: profile.Host{Home: m.home, Base: "/"}, StateDir: filepath.Join(dir, "state"), System: "linux", Arch: runtime.GOARCH,
		Log: &m.said, Getenv: os.Getenv, NodeKey: m.world.Node.Key,
	}
	m.files()
	return m
}

// everything is a profile with every directory and every step.
func everything(t *testing.T, program string) vmkeys.Profile {
	t.Helper()
	p := vmkeys.Default()
	p.Name, p.Port, p.Program, p.Secrets, p.OpenClaw = "work", freePort(t), program, "~/secrets.env", true
	p.Mounts = vmkeys.Mounts{Project: "~/project", Provision: "~/plugins", Vault: "~/vault", Config: "~/claw", AgentData: "~/claw/agents", BuildlogData: "~/log", Skills: "~/skills"}
	p.Roles = vmkeys.Roles{GhCLI: true, Tailscale: true, Cadence: true, Buildlog: true, Qortex: true}
	return p
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// files writes what the profile names.
func (m *machine) files() {
	m.Helper()
	all := map[string]string{"project/main.go": "package main\n", "secrets.env": "ANTHROPIC_API_KEY=sk-test-1234\n", "claw/openclaw.json": "{\n  // mine\n  agents: { list: [{ id: 'main' }] },\n}\n"}
	for _, name := range []string{"cadence", "buildlog", "qortex"} {
		all["plugins/"+name+"/step.json5"] = `{name: "` + name + `", needs: ["gateway"], check: "check.sh", apply: "apply.sh"}`
		all["plugins/"+name+"/check.sh"] = "[ -e /var/lib/" + name + " ]\n"
		all["plugins/"+name+"/apply.sh"] = "mkdir -p /var/lib/" + name + "\n"
	}
	for name, text := range all {
		path := filepath.Join(m.home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			m.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			m.Fatal(err)
		}
	}
}

// up brings it up and returns what became of each step, in their order.
func (m *machine) up(from string) (string, error) {
	m.Helper()
	m.said.Reset()
	err := m.Up(m.Context(), from)
	m.Logf("%s%v %s", m.said.String(), err, errhint.Of(err))
	var results []string
	for _, found := range regexp.MustCompile(`(?m)^  ([a-z-]+) +✓  (changed|unchanged)$`).FindAllStringSubmatch(m.said.String(), -1) {
		results = append(results, found[1]+" "+found[2])
	}
	return strings.Join(results, ", "), err
}

// inside runs a script as root and returns what it prints.
func (m *machine) inside(script string) string {
	m.Helper()
	p, err := m.Command(m.Context(), []string{"sh", "-euc", script})
	if err != nil {
		m.Fatal(err)
	}
	return m.output(p.Argv)
}

func (m *machine) output(argv []string) string {
	m.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(m.Context()), argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		m.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Every step runs for real, in a sandbox with a Debian of its own: one that fails half-way
// is gone on from, and the second time nothing changes.
func TestEveryStep(t *testing.T) {
	m := newMachine(t)
	m.world.Node.Sign(t, false)
	results, err := m.up("")
	if err == nil || !strings.Contains(err.Error(), "step gateway") || !strings.Contains(err.Error(), "is not signed") {
		t.Fatalf("packages that a stranger signed: %v", err)
	}
	if results != "secrets changed, overlay changed, docker changed, gh-cli changed" {
		t.Errorf("the first time: %s", results)
	}
	m.world.Node.Sign(t, true)
	results, err = m.up("")
	if err != nil {
		t.Fatal(err)
	}
	if want := "secrets unchanged, overlay unchanged, docker unchanged, gh-cli unchanged, gateway changed, firewall changed, tailscale changed, cadence changed, buildlog changed, qortex changed, sandbox changed, sync-gate unchanged"; results != want {
		t.Errorf("after the failure: %s, want %s", results, want)
	}
	m.made()
	before := m.inside("cat /var/lib/limatest/restarts")
	if results, err = m.up(""); err != nil || strings.Contains(results, " changed") || !strings.Contains(m.said.String(), "nothing to change, 0 skipped") {
		t.Errorf("the second time: %s %v", results, err)
	}
	if results, err = m.up("sandbox"); err != nil || results != "sandbox unchanged, sync-gate unchanged" {
		t.Errorf("from one on: %s %v", results, err)
	}
	if after := m.inside("cat /var/lib/limatest/restarts"); after != before {
		t.Errorf("services were started anew: %s, before %s", after, before)
	}
}

// gatewayScript starts the gateway by the command of its unit, and asks it whether it is
// well.
const gatewayScript = `
unit=/etc/systemd/system/atoll-gateway.service.d/vm.conf
cd "$(sed -n 's/^WorkingDirectory=//p' $unit)"
export ATOLL_STATE_DIR=/var/lib/atoll "$(sed -n 's/^Environment=//p' $unit)"
$(sed -n 's/^ExecStart=//p' $unit) >/tmp/gateway.log 2>&1 & gateway=$!
trap 'kill $gateway' EXIT
for i in $(seq 300); do
	curl -fsS "http://127.0.0.1:$(sed -n 's/^ExecStart=.*:\([0-9]*\)$/\1/p' $unit)/health" 2>/dev/null && exit
	sleep 0.2
done
cat /tmp/gateway.log`

// made looks at what the steps made.
func (m *machine) made() {
	m.Helper()
	for script, want := range map[string]string{
		"docker --version": "Docker version", "gh --version": "gh version", "node --version": "v24.", "openclaw --version": "OpenClaw 20", "/usr/sbin/nft --version": "nftables v",
		"docker image inspect -f '{{.Config.User}}' openclaw-sandbox:bookworm-slim": "sandbox",
		"stat -c '%a %U:%G' " + steps.EnvFile:                                       "600 root:root",
		"stat -c '%a %U:%G' " + steps.OpenClawFile:                                  "600 atoll:atoll",
		"cat " + steps.OpenClawFile:                                                 "// mine",
		"stat -c '%U' /var/lib/atoll /var/lib/openclaw/overlay/openclaw/upper":      "atoll\natoll",
		"cat /var/lib/limatest/mount":                                               "-t overlay -o lowerdir=/mnt/obsidian,upperdir=/var/lib/openclaw/overlay/obsidian/upper,workdir=/var/lib/openclaw/overlay/obsidian/work overlay /workspace-obsidian",
		"cat /var/lib/limatest/rules":                                               strings.TrimSpace(steps.Rules(m.Profile.Port)),
		"cat /mnt/skills-custom/x 2>/dev/null || touch /mnt/openclaw-agents/x && rm /mnt/openclaw-agents/x && id": "uid=0",
		steps.ProgramFile + " version": "atoll ",
	} {
		if got := m.inside(script); !strings.Contains(got, want) {
			m.Errorf("%s: %s, want %s", script, got, want)
		}
	}
	if got := m.inside(gatewayScript); !strings.Contains(got, `{"ok":true`) {
		m.Errorf("the gateway does not answer: %s", got)
	}
	restarts := strings.Fields(m.inside("cat /var/lib/limatest/restarts"))
	want := []string{"workspace.mount", `workspace\x2dobsidian.mount`, "docker.service", "atoll-gateway.service", "atoll-firewall.service", "atoll-tailnet.service"}
	if !slices.Equal(restarts, want) {
		m.Errorf("services: %q, want %q", restarts, want)
	}
}
