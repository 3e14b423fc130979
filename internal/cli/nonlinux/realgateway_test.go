//go:build linux

package nonlinux_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/cli/nonlinux"
	"github.com/atoll-run/atoll/internal/testkit/buildtest"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/terminaltest"
)

var listening = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// realGateway starts the program's own gateway and returns its address and a token.
func realGateway(t *testing.T) (address, token string) {
	t.Helper()
	dir := t.TempDir()
	if err := buildtest.Programs(t.Context(), dir, "atoll"); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "atoll")
	environment := append(os.Environ(), "ATOLL_STATE_DIR="+filepath.Join(dir, "state"), "HOME="+dir)
	cmd := exec.Command(program, "gateway", "--listen", "127.0.0.1:0")
	cmd.Env = environment
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	for lines := bufio.NewScanner(log); address == ""; {
		if !lines.Scan() {
			t.Fatal("the gateway ended")
		}
		address = listening.FindString(lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
	create := exec.CommandContext(t.Context(), program, "token", "create", "--role", "admin", "--name", "mac", "--json")
	create.Env = environment
	out, err := create.Output()
	var made struct {
		Token string `json:"token"`
	}
	if err != nil || json.Unmarshal(out, &made) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return "http://" + address, made.Token
}

// mac runs a command line as on a Mac, with a home directory of its own.
type mac struct{ home string }

func (m mac) atoll(t *testing.T, in string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = nonlinux.Main(t.Context(), args, &nonlinux.Terminal{
		In: strings.NewReader(in), Out: &o, Err: &e, Home: m.home, System: "plan9", Getenv: func(string) string { return "" },
	})
	return o.String(), e.String(), code
}

func TestClientOfARealGateway(t *testing.T) {
	address, token := realGateway(t)
	m := mac{t.TempDir()}
	if _, errs, code := m.atoll(t, token, "context", "add", "work", address, "--token-file", "-"); code != 0 {
		t.Fatal(errs)
	}
	if out, _, _ := m.atoll(t, "", "context", "ls", "--json"); !strings.Contains(out, `"current":true,"token":true`) || strings.Contains(out, token) {
		t.Errorf("context ls: %s", out)
	}
	id := makeSandbox(t, address, token)
	config := filepath.Join(m.home, "atoll.json5")
	if err := os.WriteFile(config, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line string
		want string
		code int
	}{
		{"doctor", "ok    gateway    ready at " + address, 0},
		{"dashboard --no-open", address + "/ui/", 0},
		{"exec " + id + " -- echo from inside", "from inside\n", 0},
		{"exec --json " + id + " -- echo json", `"stdout":"json\n"`, 0},
		{"exec " + id + " -- sh -c exit${IFS}7", "", 7},
		{"config check " + config, ": ok; ", 0},
		{"dashboard --json --gateway work", `{"url":"` + address + `/ui/"}`, 0},
		{"ps --gateway work", id, 0},
		{"runs list --gateway work", "", 0},
		{"sync status", "no overlay", 1},
		{"sync approve", "give paths, or --all-passing", 2},
		{"ps --gateway nowhere", `there is no context "nowhere"`, 2},
	} {
		out, errs, code := m.atoll(t, "", strings.Fields(c.line)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: %d %q %q", c.line, code, out, errs)
		}
	}
	speakMCP(t, m)
	openSSH(t, m, id)
	sitAtSSH(t, m, id)
	copyFiles(t, m, id)
}

// openSSH opens the sandbox with the real client of OpenSSH, whose proxy is this test.
func openSSH(t *testing.T, m mac, id string) {
	t.Helper()
	need.Program(t, "ssh", "openssh-client")
	t.Setenv(proxyVariable, m.home)
	for _, c := range []struct {
		args []string
		in   string
		want string
		code int
	}{
		{[]string{"ssh", id, "cat; echo to stderr >&2; exit 7"}, "from the Mac\n", "from the Mac\nto stderr", 7},
		{[]string{"ssh", "--gateway", "work", id, "echo $((6*7))"}, "", "42\n", 0},
		{[]string{"ssh", "a b"}, "", "that is no name of a sandbox", 1},
		{[]string{"ssh", "nowhere", "true"}, "", "", 125},
	} {
		out, errs, code := m.atoll(t, c.in, c.args...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%q: %d %q %q", c.args, code, out, errs)
		}
	}
}

// obey says its window's size, each new one, and an interrupt.
const obey = `trap 'echo "size $(stty size)"' WINCH
trap 'echo "caught INT"' INT
echo "ready $(stty size)"
while :; do sleep 0.1; done
`

// sitAtSSH has a person at a terminal: its size and its keys reach the sandbox, and at the
// end it is as before.
func sitAtSSH(t *testing.T, m mac, id string) {
	t.Helper()
	if _, errs, code := m.atoll(t, "", "exec", id, "--", "sh", "-c", `printf %s "$0" >/tmp/obey`, obey); code != 0 {
		t.Fatal(errs)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "ssh", id)
	cmd.Env = append(os.Environ(), "TERM=xterm")
	s := terminaltest.Start(t, cmd, 30, 100)
	s.Press("exec sh /tmp/obey\n")
	s.Await("ready 30 100")
	s.Resize(40, 120)
	s.Await("size 40 120")
	s.Press("\x03")
	s.Await("caught INT")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := s.End(); code != 255 { // as ssh has it
		t.Errorf("exit code %d:\n%s", code, s.Text())
	}
	const gone = `for i in $(seq 300); do grep -lqs /tmp/obey$ /proc/[0-9]*/cmdline || exit 0; sleep 0.1; done; exit 1`
	if out, errs, code := m.atoll(t, "", "exec", id, "--", "sh", "-c", gone); code != 0 {
		t.Errorf("the program goes on: %s %s", out, errs)
	}
}

// copyFiles copies a file in and out with the real client of sftp.
func copyFiles(t *testing.T, m mac, id string) {
	t.Helper()
	sftp := need.Program(t, "sftp", "openssh-client")
	var config string
	_ = filepath.WalkDir(m.home, func(path string, _ os.DirEntry, _ error) error {
		if strings.HasSuffix(path, "/ssh/config") {
			config = path
		}
		return nil
	})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("from the Mac\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), sftp, "-F", config, "-b", "-", id+".atoll")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader("put in /tmp/there\nrename /tmp/there /tmp/moved\nget /tmp/moved out\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "out")); string(text) != "from the Mac\n" {
		t.Errorf("%q %v", text, err)
	}
}

// proxyVariable is the home directory of a proxy command, in the processes that ssh starts.
const proxyVariable = "NONLINUX_TEST_HOME"

func TestMain(m *testing.M) {
	home := os.Getenv(proxyVariable)
	if home == "" || len(os.Args) < 2 || os.Args[1] != "ssh" {
		os.Exit(m.Run())
	}
	ctx, stop := nonlinux.WithSignals(context.Background())
	code := nonlinux.Main(ctx, os.Args[1:], &nonlinux.Terminal{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Home: home, System: "plan9", Getenv: func(string) string { return "" },
	})
	stop()
	os.Exit(code)
}

// makeSandbox makes a sandbox at the gateway.
func makeSandbox(t *testing.T, address, token string) string {
	t.Helper()
	c, err := client.New(client.Options{URL: address, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	box, err := c.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.RemoveSandbox(context.WithoutCancel(ctx), box.ID) })
	return box.ID
}

// speakMCP uses a tool through the bridge; standard output has the protocol only.
func speakMCP(t *testing.T, m mac) {
	t.Helper()
	out, errs, code := m.atoll(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sandbox_exec","arguments":{"command":"echo by $((40+2)) mcp"}}}
not json
`, "mcp")
	if code != 0 {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	answers := map[string]string{}
	for line := range strings.Lines(out) {
		var message struct {
			ID json.RawMessage `json:"id"`
		}
		if err := json.Unmarshal([]byte(line), &message); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		answers[string(message.ID)] = line
	}
	if !strings.Contains(answers["1"], "serverInfo") || !strings.Contains(answers["2"], "by 42 mcp") {
		t.Errorf("%q", out)
	}
}
