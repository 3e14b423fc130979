//go:build linux

package nonlinux_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/nonlinux"
	"github.com/atoll-run/atoll/internal/testkit/gatewaytest"
)

// atoll runs a command line as on another system and returns what it printed.
func atoll(t *testing.T, env map[string]string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e strings.Builder
	code = nonlinux.Main(t.Context(), args, &nonlinux.Terminal{
		Out: &o, Err: &e, Home: t.TempDir(), System: "plan9", Getenv: func(name string) string { return env[name] },
	})
	return o.String(), e.String(), code
}

// Every verb that needs Linux says so in one sentence, whatever its flags.
func TestVerbsThatNeedLinuxSayIt(t *testing.T) {
	for _, name := range nonlinux.LinuxOnly() {
		_, errs, code := atoll(t, nil, name, "--anything", "--", "x")
		want := "error: atoll " + name + " needs Linux, and this is plan9; on this machine work with a gateway: atoll runs start --gateway URL\n"
		if errs != want || code != 1 {
			t.Errorf("%s: %d %q", name, code, errs)
		}
	}
}

// What the program says where it is not Linux names the next command, and no help text
// starts a virtual machine.
func TestNextCommands(t *testing.T) {
	for _, c := range []struct{ system, line, want string }{
		{"darwin", "claude", "hint: it works in a virtual machine: make one with `atoll vm init` and `atoll vm up`"},
		{"darwin", "--help", `"atoll claude", codex, gemini`},
		{"darwin", "vm up", "hint: name the directory of your project, or run `atoll vm init`"},
		{"darwin", "ps", "hint: "},
		{"windows", "claude", "work with a gateway: atoll runs start --gateway URL"},
		{"windows", "vm status", "hint: on Windows run atoll for Linux in WSL 2, or work with a gateway: `atoll context add`"},
	} {
		home := t.TempDir()
		if strings.HasPrefix(c.line, "vm") {
			writeProfile(t, home, "")
		}
		out, errs, _ := on(t, c.system, home, strings.Fields(c.line)...)
		if !strings.Contains(out+errs, c.want) {
			t.Errorf("%s on %s: %s%s", c.line, c.system, out, errs)
		}
	}
	home := t.TempDir()
	writeProfile(t, home, "project: '"+home+"'")
	t.Setenv("PATH", t.TempDir())
	if out, errs, code := on(t, "darwin", home, "claude", "--help"); code != 0 || !strings.Contains(out, "works in the virtual machine") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// writeProfile writes a configuration with a profile into a home directory.
func writeProfile(t *testing.T, home, mounts string) {
	t.Helper()
	dir := filepath.Join(home, ".atoll")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "atoll.json5"), []byte("{vm: {profiles: {work: {mounts: {"+mounts+"}}}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// on runs a command line as on a system.
func on(t *testing.T, system, home string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e strings.Builder
	code = nonlinux.Main(t.Context(), args, &nonlinux.Terminal{Out: &o, Err: &e, Home: home, System: system, Getenv: func(name string) string {
		if name == "ATOLL_STATE_DIR" {
			return filepath.Join(home, ".atoll")
		}
		return ""
	}})
	return o.String(), e.String(), code
}

func TestConfigCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "atoll.json5")
	for text, want := range map[string]struct {
		text string
		code int
	}{
		`{agents: {defaults: {sandbox: {mode: "all"}}}}`: {": ok; ", 0},
		`{agents: {defualts: {}}}`:                       {"did you mean", 2},
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := atoll(t, nil, "config", "check", file)
		if code != want.code || !strings.Contains(out+errs, want.text) {
			t.Errorf("%s: %d %q %q", text, code, out, errs)
		}
	}
	if out, _, code := atoll(t, nil, "config", "schema"); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("schema: %d %.80q", code, out)
	}
}

// gateway starts a real gateway, whose agent runs its task as a shell script.
func gateway(t *testing.T) map[string]string {
	t.Helper()
	g, err := gatewaytest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return map[string]string{"ATOLL_GATEWAY_URL": g.URL, "ATOLL_GATEWAY_TOKEN": g.Token}
}

func TestVerbsOfAGateway(t *testing.T) {
	env := gateway(t)
	out, errs, code := atoll(t, env, "runs", "start", "--json", "-m", `printf 'It is 42.\033[2J'`)
	var run api.Run
	if err := json.Unmarshal([]byte(out), &run); err != nil || code != 0 || !strings.Contains(errs, ": executing\n") {
		t.Fatalf("%d %q %q: %v", code, out, errs, err)
	}
	for _, c := range []struct{ line, want string }{
		{"runs list", run.ID},
		{"runs show " + run.ID, "It is 42."},
		{"runs show " + run.ID + " --json", `"step":"done"`},
		{"runs cancel " + run.ID, "It is 42."},
		{"doctor", "ok    gateway    ready at http://"},
	} {
		out, errs, code := atoll(t, env, strings.Fields(c.line)...)
		if code != 0 || !strings.Contains(out, c.want) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: %d %q %q", c.line, code, out, errs)
		}
	}
}

func TestPs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Sandboxes{Sandboxes: []api.Sandbox{{ContainerName: "box\x1b[2J", State: "running"}, {ContainerName: "lost"}}})
	}))
	t.Cleanup(server.Close)
	out, errs, code := atoll(t, nil, "ps", "--gateway", server.URL)
	if code != 0 || !strings.Contains(out, "running") || !strings.Contains(out, "gone") || strings.Contains(out, "\x1b") {
		t.Errorf("%d %q %q", code, out, errs)
	}
}

func TestProblems(t *testing.T) {
	env := gateway(t)
	delete(env, "ATOLL_GATEWAY_TOKEN")
	for line, want := range map[string]struct {
		text string
		code int
	}{
		"runs list":                     {"hint: set ATOLL_GATEWAY_TOKEN", 1},
		"runs list --gateway nonsense":  {"hint: `atoll context ls` lists them", 2},
		"runs list --gateway ftp://x":   {"hint: give --gateway URL", 2},
		"runs start":                    {"hint: give it with --message", 2},
		"runs list --nonsense":          {"unknown flag", 2},
		"nonsense":                      {`atoll has no command "nonsense"`, 2},
		"config check /nowhere/a.json5": {"hint: name a file", 2},
	} {
		if _, errs, code := atoll(t, env, strings.Fields(line)...); code != want.code || !strings.Contains(errs, want.text) {
			t.Errorf("%s: %d %q", line, code, errs)
		}
	}
	if _, errs, code := atoll(t, nil, "ps"); code != 2 || !strings.Contains(errs, "no gateway is named") {
		t.Errorf("without a gateway: %d %q", code, errs)
	}
	if out, _, code := atoll(t, nil, "doctor"); code == 0 || !strings.Contains(out, "they need Linux, and this is plan9") {
		t.Errorf("doctor: %d %q", code, out)
	}
}

func TestVersionAndCompletion(t *testing.T) {
	for _, line := range []string{"version", "--version", "completion bash"} {
		if out, errs, code := atoll(t, nil, strings.Fields(line)...); code != 0 || !strings.Contains(out, "atoll") {
			t.Errorf("%s: %d %q %q", line, code, out, errs)
		}
	}
}
