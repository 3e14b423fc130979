package app_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox/verify"
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

// attackRenderer (1): a renderer has no file, no network and no sibling, shown with a
// stand-in that has its namespaces, by the ring of verify, and by what the kernel says of
// real renderers.
func attackRenderer(t *testing.T, s *attackSite) {
	s.opened(t, "http://shop.example/")
	box := s.started(t).Box
	out := sh(t, box, rendererStandIn)
	if strings.Count(out, "=refused") != 9 || strings.Contains(out, "=done") || !strings.Contains(out, "made") {
		t.Errorf("the stand-in: %s", out)
	}
	if ring := verifyBrowser(t, s.app, box.Name); ring.Status != verify.OK {
		t.Errorf("%+v", ring)
	}
	guest := s.app.GuestProcess(t.Context(), box.Name)
	if os.Getuid() != 0 || guest == 0 {
		return // the files of other users' processes cannot be read, and engines have their own
	}
	renderers := 0
	for _, pid := range descendants(t, guest) {
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

// attackDevices (17): a page gets nothing that belongs to the person at a machine.
func attackDevices(t *testing.T, s *attackSite) {
	said := s.evaluated(t, "https://shop.example/", devices)
	if !strings.Contains(said, "true clipboard") || strings.Count(said, "=denied") != 10 {
		t.Error(said)
	}
}

// namespaceAttempts makes a user namespace, and tries what the capabilities in it would open.
const namespaceAttempts = `python3 - <<'END'
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, *args):
    ctypes.set_errno(0)
    return name + "=" + ("made" if libc.syscall(*args) >= 0 else os.strerror(ctypes.get_errno()).replace(" ", "_"))
NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWNET, NEWPID = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x40000000, 0x20000000
def sock(name, *args):
    try: socket.socket(*args).close(); return name + "=made"
    except OSError as e: return name + "=" + os.strerror(e.errno).replace(" ", "_")
print(tried("user", 272, NEWUSER))
print(tried("mounts", 272, NEWNS), tried("network", 272, NEWNET), tried("names", 272, NEWUTS), tried("ipc", 272, NEWIPC))
print(tried("mount", 165, 0, 0, 0, 0, 0), tried("fsopen", 430, b"tmpfs", 0), tried("setns", 308, 0, 0), tried("keyctl", 250, 0, 0), tried("bpf", 321, 0, 0, 0), tried("io_uring", 425, 1, 0))
print(sock("netlink", socket.AF_NETLINK, socket.SOCK_RAW), sock("packet", socket.AF_PACKET, socket.SOCK_RAW), sock("raw", socket.AF_INET, socket.SOCK_RAW, 255), sock("udp", socket.AF_INET, socket.SOCK_DGRAM))
c = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
try: c.getsockopt(0, 64, 84); print("iptables=made")
except OSError as e: print("iptables=" + os.strerror(e.errno).replace(" ", "_"))
END`

// attackNamespaces (2): a process of the browser that has left its own sandbox can make a
// user namespace, and nothing that this would open.
func attackNamespaces(t *testing.T, s *attackSite) {
	out := sh(t, s.started(t).Box, namespaceAttempts)
	for word := range strings.FieldsSeq(out) {
		name, got, _ := strings.Cut(word, "=")
		want := "Operation_not_permitted"
		if name == "user" || name == "udp" {
			want = "made"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if len(strings.Fields(out)) != 16 {
		t.Errorf("tried: %s", out)
	}
}

// attackCallsHome (17): what a browser asks of its makers by itself is refused and counted;
// chromium-headless-shell asks nothing.
func attackCallsHome(t *testing.T, s *attackSite) {
	s.opened(t, "http://shop.example/")
	denied := s.used.Denials()
	t.Logf("denied: %q", denied)
	if !s.started(t).Windowed() && len(denied) > 0 {
		t.Errorf("chromium-headless-shell called: %q", denied)
	}
	s.reachedOnly(t)
}
