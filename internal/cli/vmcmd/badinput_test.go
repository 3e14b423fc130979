//go:build linux

package vmcmd_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/testkit/limatest"
)

// refusal is an `atoll vm up` that is refused before a virtual machine is made.
type refusal struct {
	name       string
	old, new   string // replaced in the configuration
	before     func(m *mac, t *testing.T)
	args       []string
	want, hint string // of the error, and of what helps
}

const port = "port: 18789"

// The profile that every refusal changes something of.
const goodProfile = `{vm: {profiles: {work: {mounts: {project: '~/project', provision: '~/plugins'}, secrets: '~/.openclaw-secrets.env', ` + port + `, disk: '50g', memory: '8g', roles: {ghCli: false, cadence: true}, program: '@PROGRAM@'}}}}`

const project = "project: '~/project'"

func refusals() []refusal {
	mount := func(name, value, want, hint string) refusal {
		return refusal{name: name, old: project, new: project + ", vault: '" + value + "'", want: want, hint: hint}
	}
	plugin := func(name, text, want string) refusal {
		return refusal{name: name, before: func(m *mac, _ *testing.T) { m.file("plugins/cadence/step.json5", text, 0o644) }, want: want, hint: "a plug-in is a directory with step.json5"}
	}
	return []refusal{
		mount("a mount that does not exist", "~/nowhere", "mounts.vault: @HOME@/nowhere does not exist", "make it, or remove the key"),
		mount("a relative mount", "notes", `"notes" is a relative path`, "or a path that begins with ~/"),
		mount("a mount in another", "~/project/src", "mounts.vault (@HOME@/project/src) lies in mounts.project", "name directories that do not contain each other"),
		mount("the same mount twice", "~/project", "lies in mounts.project", "name directories that do not contain each other"),
		mount("a mount that is a file", "~/project/main.go", "main.go is a file", "name the directory that it is in"),
		mount("a mount with credentials", "~/.ssh", "blocked path", "name a directory of its own"),
		mount("a mount of the system", "/etc", `"/etc"`, "name a directory of its own"),
		mount("a whole home", "~", `"@HOME@"`, "name a directory of its own"),
		{name: "no project", old: project + ",", want: "mounts.project is missing", hint: "`atoll vm init`"},
		{name: "a mount that only others can write", old: project, new: project + ", agentData: '~/fixed'", before: readOnlyDirectory, want: "@HOME@/fixed is to be writable inside, and you cannot write it", hint: "change its owner or its mode"},
		{name: "a small disk", old: "disk: '50g'", new: "disk: '1g'", want: "disk is 1GiB, and 20GiB is the least", hint: "VM_DISK"},
		{name: "little memory", old: "memory: '8g'", new: "memory: '1g'", want: "memory is 1GiB, and 2GiB is the least", hint: "VM_MEMORY"},
		{name: "a port that is taken", before: takePort, old: port, new: "port: @TAKEN@", want: "port @TAKEN@ is taken", hint: "or set another port in the profile"},
		{name: "secrets that are not there", old: "~/.openclaw-secrets.env", new: "~/nowhere", want: "secrets: open @HOME@/nowhere", hint: "name a file that exists, or remove the key secrets"},
		{name: "secrets that others read", before: func(m *mac, _ *testing.T) { m.mode(".openclaw-secrets.env", 0o644) }, want: "others can read @HOME@/.openclaw-secrets.env", hint: "run chmod 600 @HOME@/.openclaw-secrets.env"},
		{name: "secrets of another form", before: func(m *mac, _ *testing.T) { m.file(".openclaw-secrets.env", "sk-half-a-key\n", 0o600) }, want: "line 1 of @HOME@/.openclaw-secrets.env is not NAME=value", hint: "write one variable a line"},
		{name: "a program of another system", old: "@PROGRAM@", new: "~/project/main.go", want: "is no program for linux/", hint: "set program in the profile"},
		plugin("a plug-in with unknown keys", `{name: "cadence", run: "x"}`, "plug-in cadence: "),
		plugin("a plug-in of another name", `{name: "other", check: "check.sh", apply: "apply.sh"}`, `its name is "other"`),
		plugin("a plug-in with a script elsewhere", `{name: "cadence", check: "../check.sh", apply: "apply.sh"}`, `"../check.sh" is no name of a script`),
		plugin("a plug-in without a script", `{name: "cadence", check: "check.sh", apply: "none.sh"}`, "none.sh"),
		{name: "a plug-in that needs what is not", before: func(m *mac, _ *testing.T) {
			m.file("plugins/cadence/step.json5", `{name: "cadence", needs: ["none"], check: "check.sh", apply: "apply.sh"}`, 0o644)
		}, want: "step cadence needs [none]", hint: "name steps that exist"},
		{name: "a plug-in without a directory", old: ", provision: '~/plugins'", want: "roles.cadence is on, and mounts.provision is missing", hint: "name the directory of plug-ins"},
		{name: "a step that is none", args: []string{"--from", "nonsense"}, want: `there is no step "nonsense"`, hint: "`atoll vm status` lists them"},
		{name: "a profile that is none", args: []string{"--profile", "nonsense"}, want: `"nonsense"`, hint: "work"},
		{name: "an old limactl", before: func(_ *mac, t *testing.T) { t.Setenv(limatest.VersionVariable, "0.23.2") }, want: "limactl 0.23.2 is too old: 1.0.0 is the least", hint: "run `brew upgrade lima`"},
		{name: "a limactl of the future", before: func(_ *mac, t *testing.T) { t.Setenv(limatest.VersionVariable, "3.0.0") }, want: "limactl 3.0.0 is not known", hint: "or a newer atoll"},
		{name: "no limactl", before: func(_ *mac, t *testing.T) { t.Setenv("PATH", t.TempDir()) }, want: "limactl is not installed", hint: "run `brew install lima`"},
	}
}

// mode changes the mode of a file of the home directory.
func (m *mac) mode(name string, mode os.FileMode) {
	m.Helper()
	if err := os.Chmod(filepath.Join(m.home, name), mode); err != nil {
		m.Fatal(err)
	}
}

// readOnlyDirectory makes ~/fixed, which even root cannot write.
func readOnlyDirectory(m *mac, t *testing.T) {
	t.Helper()
	dir := filepath.Join(m.home, "fixed")
	err := os.Mkdir(dir, 0o755)
	err = errors.Join(err, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if err = errors.Join(err, unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")); err != nil {
		t.Fatal(err)
	}
}

// takePort listens on a port while the test runs.
func takePort(m *mac, t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	m.env["TAKEN"] = fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// What cannot work is refused before anything is made, with the reason and what helps.
func TestUpIsRefused(t *testing.T) {
	for _, c := range refusals() {
		t.Run(c.name, func(t *testing.T) {
			m := newMac(t)
			m.file(".ssh/id", "key\n", 0o600)
			if c.before != nil {
				c.before(m, t)
			}
			if !strings.Contains(goodProfile, c.old) {
				t.Fatalf("the profile has no %q", c.old)
			}
			atoll, err := program()
			if err != nil {
				t.Fatal(err)
			}
			known := strings.NewReplacer("@HOME@", m.home, "@TAKEN@", m.env["TAKEN"], "@PROGRAM@", atoll)
			text := goodProfile
			if c.old != "" {
				text = strings.Replace(text, c.old, c.new, 1)
			}
			text = known.Replace(text)
			if c.name != "a port that is taken" {
				text = strings.Replace(text, port, fmt.Sprint("port: ", freePort(t)), 1)
			}
			if err := os.MkdirAll(m.env["ATOLL_STATE_DIR"], 0o700); err != nil {
				t.Fatal(err)
			}
			m.writeConfig(text)
			out, err := m.vm("", append([]string{"up"}, c.args...)...)
			if err == nil || !strings.Contains(err.Error(), known.Replace(c.want)) || !strings.Contains(errhint.Of(err), known.Replace(c.hint)) {
				t.Errorf("%v\nhint: %s\nwant %s\nhint: %s\n%s", err, errhint.Of(err), known.Replace(c.want), known.Replace(c.hint), out)
			}
			if made, _ := os.ReadDir(os.Getenv(limatest.HomeVariable)); len(made) > 0 {
				t.Errorf("a virtual machine was made: %v", made)
			}
		})
	}
}

// A step that fails half-way is done the next time, and earlier ones can be left out; a
// mount that was made read-only is not made writable by the profile.
func TestAStepThatFails(t *testing.T) {
	m := newMac(t)
	m.configure("mode: 'overlay'")
	m.file("plugins/cadence/apply.sh", "exit 3\n", 0o644)
	m.hinted("step cadence", "run `atoll vm up` again", "up")
	m.hinted("step cadence", "run `atoll vm up` again", "up")
	m.file("plugins/cadence/apply.sh", "mkdir -p /var/lib/cadence\n", 0o644)
	if out := m.must("cadence     ✓  changed", "up", "--from", "cadence"); strings.Contains(out, "secrets") {
		t.Errorf("--from does all steps:\n%s", out)
	}
	m.must("nothing to change", "up")
	m.hinted(`no step "nonsense"`, "`atoll vm status` lists them", "up", "--from", "nonsense")
	m.drift()
}

// hinted is refused with what helps.
func (m *mac) hinted(want, hint string, args ...string) {
	m.Helper()
	out, err := m.vm("", args...)
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(errhint.Of(err), hint) {
		m.Errorf("vm %s: %v (%s)\n%s\nwant %q (%s)", strings.Join(args, " "), err, errhint.Of(err), out, want, hint)
	}
}
