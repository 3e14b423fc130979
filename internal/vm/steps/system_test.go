//go:build linux

package steps_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/vm/steps"
)

// systemd takes every unit that the steps write without a word.
func TestUnits(t *testing.T) {
	analyze := need.Program(t, "systemd-analyze", "systemd")
	dir := t.TempDir()
	var units []string
	for _, step := range setup().List() {
		for _, a := range step.Actions {
			_, path, _ := strings.Cut(a.Apply, ".new && mv -f ")
			_, path, _ = strings.Cut(path, ".new ")
			name, isUnit := strings.CutPrefix(strings.Trim(path, "'"), "/etc/systemd/system/")
			if !isUnit {
				continue
			}
			at := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			// The programs are inside; here only the rest is looked at.
			text := strings.NewReplacer("=/usr/local/bin/atoll ", "=/bin/true ", "=/usr/sbin/nft ", "=/bin/true ").Replace(string(a.Stdin))
			if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if filepath.Dir(at) == dir {
				units = append(units, at)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "docker.service"), []byte("[Service]\nExecStart=/bin/true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if len(units) != 5 {
		t.Errorf("%d units: %q", len(units), units)
	}
	for _, unit := range units {
		cmd := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", unit)
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":", "SYSTEMD_LOG_LEVEL=warning")
		if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), filepath.Base(unit)) {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// The rules are loaded in a network namespace that is joined with another one, and tried
// with packets from either side, twice.
func TestFirewall(t *testing.T) {
	need.Root(t, "network namespaces")
	for _, program := range [][2]string{{"nft", "nftables"}, {"ip", "iproute2"}, {"python3", "python3"}} {
		need.Program(t, program[0], program[1])
	}
	file := filepath.Join(t.TempDir(), "firewall.nft")
	if err := os.WriteFile(file, []byte(steps.Rules(18789)), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", "sh", "-euc", firewallScript, "sh", file)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"in tcp 18789 open", "in tcp 22 open", "in tcp 80 silent", "in tcp 8080 silent",
		"out tcp 443 open", "out tcp 80 open", "out tcp 53 open", "out tcp 22 denied", "out tcp 25 denied", "out tcp 18789 denied",
		"out udp 53 sent", "out udp 123 sent", "out udp 41641 sent", "out udp 5353 denied", "tailnet tcp 9999 open", "loopback tcp 25 open",
	} {
		if !strings.Contains(string(out), want+"\n") {
			t.Errorf("not %q", want)
		}
	}
	if t.Failed() {
		fmt.Fprintf(t.Output(), "%s\n", out)
	}
}

// firewallScript makes a network of two namespaces: this one has the firewall, the other
// is the world, which answers on every port that is tried.
const firewallScript = `
nft -c -f "$1"
unshare --net sleep 60 & world=$!
trap 'kill $world' EXIT
until [ "$(readlink /proc/$world/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
in_world() { nsenter --net=/proc/$world/ns/net "$@"; }
ip link set lo up
ip link add inner type veth peer name outer netns $world
ip addr add 10.9.0.2/24 dev inner
ip link set inner up
in_world ip link set lo up
in_world ip addr add 10.9.0.1/24 dev outer
in_world ip addr add 100.64.0.1/10 dev outer
in_world ip link set outer up
ip route add 100.64.0.0/10 dev inner
nft -f "$1"
nft -f "$1"
serve='
import socket, sys, time
held = []
for port in sys.argv[1:]:
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("0.0.0.0", int(port))); s.listen(); held.append(s)
print("ready", flush=True)
time.sleep(60)
'
mkfifo "$1.a" "$1.b"
python3 -c "$serve" 18789 22 80 8080 25 >"$1.a" & inner=$!
nsenter --net=/proc/$world/ns/net python3 -c "$serve" 443 80 53 22 25 18789 9999 >"$1.b" & outer=$!
trap 'kill $world $inner $outer' EXIT
read _ <"$1.a"
read _ <"$1.b"
try='
import socket, sys
where, kind, host, *ports = sys.argv[1:]
for port in ports:
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    s.settimeout(1.5)
    try:
        s.connect((host, int(port)))
        if kind == "udp":
            s.send(b"x")
        print(where, kind, port, "open" if kind == "tcp" else "sent")
    except TimeoutError:
        print(where, kind, port, "silent")
    except OSError:
        print(where, kind, port, "denied")
'
in_world python3 -c "$try" in tcp 10.9.0.2 18789 22 80 8080
python3 -c "$try" out tcp 10.9.0.1 443 80 53 22 25 18789
python3 -c "$try" out udp 10.9.0.1 53 123 41641 5353
python3 -c "$try" tailnet tcp 100.64.0.1 9999
python3 -c "$try" loopback tcp 127.0.0.1 25
`
