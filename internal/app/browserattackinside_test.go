package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/otheruser"
)

// rendererStandIn does what Chromium does for a renderer: new user, process and network namespaces
// and an empty root. Then it tries to reach what a renderer must not.
const rendererStandIn = `python3 - <<'END'
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs("/tmp/empty", exist_ok=True)
pid = libc.syscall(56, 0x10000000 | 0x20000000 | 0x40000000 | 17, 0, 0, 0, 0)
def tried(name, f):
    try: f(); print(name + "=done", flush=True)
    except OSError as e: print(name + "=refused", flush=True)
if pid == 0:
    for port in (3128, 9222, 5900): tried("port%d" % port, lambda: socket.create_connection(("127.0.0.1", port), 2))
    tried("sibling", lambda: os.kill(2, 0))
    tried("all", lambda: os.kill(-1, 0))
    os.chroot("/tmp/empty"); os.chdir("/")
    tried("file", lambda: open("/etc/passwd"))
    tried("above", lambda: open("../../../etc/passwd"))
    tried("proc", lambda: os.listdir("/proc"))
    tried("entry", lambda: os.listdir("/")[0] if os.listdir("/") else os.stat("/nothing"))
    os._exit(0)
print("made" if pid > 0 else "not made")
os.waitpid(pid, 0)
END`

// TestAttackBrowser01_Renderer: a renderer has no file, no network and no sibling, shown
// with a stand-in that has its namespaces, and by what the kernel says of real ones.
func TestAttackBrowser01_Renderer(t *testing.T) {
	s := newBrowserSite(t)
	testStandIn(t, s.box)
	if os.Getuid() != 0 {
		return // the files of other users' processes cannot be read
	}
	s.visit(t, "/")
	renderers := 0
	for _, pid := range descendants(t, s.app.GuestProcess(t.Context(), s.box.Name)) {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.Contains(cmdline, []byte("--type=renderer")) {
			continue
		}
		renderers++
		checkRenderer(t, dir)
	}
	if renderers == 0 {
		t.Error("no renderer was found")
	}
}

func testStandIn(t *testing.T, box *provide.ReadySandbox) {
	out := sh(t, box, rendererStandIn)
	if strings.Count(out, "=refused") != 9 || strings.Contains(out, "=done") || !strings.Contains(out, "made") {
		t.Errorf("the stand-in: %s", out)
	}
}

// checkRenderer wants a process with an empty root, no network and no capability.
func checkRenderer(t *testing.T, dir string) {
	t.Helper()
	// Its root is a directory of a process that has ended.
	if files, err := os.ReadDir(filepath.Join(dir, "root")); err != nil && !errors.Is(err, syscall.ESRCH) || len(files) > 0 {
		t.Errorf("%s: %d files in its root, %v", dir, len(files), err)
	}
	network, err := os.ReadFile(filepath.Join(dir, "net", "dev"))
	if lines := strings.Split(strings.TrimSpace(string(network)), "\n"); err != nil || len(lines) > 3 || len(lines) == 3 && !strings.Contains(lines[2], "lo:") {
		t.Errorf("%s: %s, %v", dir, network, err)
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil || !strings.Contains(string(status), "CapEff:\t0000000000000000") || !strings.Contains(string(status), "NoNewPrivs:\t1") {
		t.Errorf("%s: %s, %v", dir, status, err)
	}
}

// devices asks for what belongs to the person at a machine; each answer is a word.
const devices = `(async () => {
	const ask = (name, f) => Promise.race([Promise.resolve().then(f), new Promise((_, no) => setTimeout(() => no(new Error("no answer")), 4000))]).then(v => name + "=" + (v ?? "given"), () => name + "=denied");
	const all = await Promise.all([
		ask("clipboard", () => navigator.clipboard.readText().then(() => "given")),
		ask("location", () => new Promise((yes, no) => navigator.geolocation.getCurrentPosition(() => yes("given"), no))),
		ask("camera", () => navigator.mediaDevices.getUserMedia({video: true}).then(() => "given")),
		ask("microphone", () => navigator.mediaDevices.getUserMedia({audio: true}).then(() => "given")),
		ask("screen", () => navigator.mediaDevices.getDisplayMedia({video: true}).then(() => "given")),
		ask("usb", () => navigator.usb.requestDevice({filters: []}).then(() => "given")),
		ask("bluetooth", () => navigator.bluetooth.requestDevice({acceptAllDevices: true}).then(() => "given")),
		ask("notifications", () => Notification.requestPermission().then(p => { if (p !== "granted") throw p })),
		ask("key", () => navigator.credentials.create({publicKey: {challenge: new Uint8Array(16), rp: {name: "x"}, user: {id: new Uint8Array(16), name: "a", displayName: "a"}, pubKeyCredParams: [{type: "public-key", alg: -7}], timeout: 2000}}).then(() => "given")),
		ask("files", () => showOpenFilePicker().then(() => "given")),
	]);
	return window.isSecureContext + " " + all.join(" ");
})()`

// TestAttackBrowser17_Devices: a page gets nothing that belongs to the person at a machine.
func TestAttackBrowser17_Devices(t *testing.T) {
	s := newBrowserSiteWith(t, func(s *browserSite) {
		s.secure = true
		s.set("agents.defaults.sandbox.browser.dangerouslyIgnoreCertificates", true)
	})
	testDevices(t, s)
	testCallsHome(t, s)
}

func testDevices(t *testing.T, s *browserSite) {
	if _, err := s.page.Navigate(t.Context(), "https://shop.example/"); err != nil {
		t.Fatal(err)
	}
	said, err := s.page.Evaluate(t.Context(), devices, 1000)
	if err != nil || !strings.Contains(said, "true clipboard") || strings.Count(said, "=denied") != 10 {
		t.Errorf("%s, %v", said, err)
	}
}

// testCallsHome: what the browser asks of its makers by itself is refused, and nothing but
// the shop was reached.
func testCallsHome(t *testing.T, s *browserSite) {
	if asked := s.net.Asked(); slices.ContainsFunc(asked, func(to string) bool { return !strings.HasPrefix(to, "shop.example:") }) {
		t.Errorf("left the host: %q", asked)
	}
	if denied := s.way.AllDenials(); !s.browser.Windowed() && len(denied) > 0 {
		t.Errorf("chromium-headless-shell called: %q", denied)
	}
}

// TestAttackBrowserAsUser runs attacks on browsers as an ordinary user.
func TestAttackBrowserAsUser(t *testing.T) {
	need.Time(t, "it starts browsers as another user")
	need.Root(t, "it becomes another user")
	const someone = 1000
	dir := t.TempDir()
	otheruser.Open(t, dir)
	state, err := os.MkdirTemp("", "u") //nolint:usetesting // short: sockets are made below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	if err := os.Chown(state, someone, someone); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(dir, "app.test")
	otheruser.Self(t, self)
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^(TestAttackBrowser(01|02|03|05|07|08|13|14|17)_.*|TestBrowserProfile)$")
	cmd.Env = append(os.Environ(), "HOME="+state, "TMPDIR="+state)
	cmd.Dir = state
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someone, Gid: someone}}
	if out, err := cmd.CombinedOutput(); err != nil || bytes.Count(out, []byte("\n--- PASS: ")) < 10 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAttackBrowser06_Names: a name whose address is this machine's or a private one is
// refused after it was resolved, although a rule allows it.
func TestAttackBrowser06_Names(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.DefaultResolver.LookupHost(t.Context(), own); err != nil {
		need.Missing(t, fmt.Errorf("the name of this machine has no address: %w", err))
	}
	_, a := newBrowsers(t, func(s *site) {
		s.set("agents.defaults.sandbox.browser.egress.mode", "enforce")
		s.set("agents.defaults.sandbox.browser.egress.allow", []any{own + ":443"})
	})
	used := useBrowser(t, a, session("browser"))
	page, err := startBrowser(t, used).NewPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := page.Navigate(t.Context(), "https://"+own+"/"); err == nil {
		t.Error("this machine was reached")
	}
	if denied := strings.Join(used.Denials(), "\n"); !strings.Contains(denied, own+":443 denied") || strings.Contains(denied, "no rule allows") {
		t.Error(denied)
	}
}
