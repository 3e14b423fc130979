package app_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// outward is a program that looks for every way out of where it runs. Its
// arguments are addresses on which the host listens: "abstract:NAME" or "IP:PORT".
// The other addresses are reserved for documentation and lead nowhere.
const outward = `
import errno, json, os, socket, sys

def attempt(family, kind, address):
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(3)
            s.connect(address)
            if kind == socket.SOCK_DGRAM:
                s.send(b"x")
            return "reached"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))

def lookup(name):
    try:
        return "reached: " + str(socket.getaddrinfo(name, 80))
    except OSError:
        return "no answer"

def routes(path, line_of_device):
    devices = {line.split()[line_of_device] for line in open(path)} - {"Iface"}
    return sorted(devices)

inet, inet6, unix = socket.AF_INET, socket.AF_INET6, socket.AF_UNIX
stream, packet = socket.SOCK_STREAM, socket.SOCK_DGRAM
found = {
    "interfaces": sorted(os.listdir("/sys/class/net")),
    "routes": routes("/proc/net/route", 0),
    "routes6": [d for d in routes("/proc/net/ipv6_route", -1) if d != "lo"],
    "tcp": attempt(inet, stream, ("192.0.2.1", 80)),
    "udp": attempt(inet, packet, ("198.51.100.1", 53)),
    "tcp6": attempt(inet6, stream, ("2001:db8::1", 443)) in ("ENETUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT"),
    "name": lookup("example.org"),
    "name of the host": lookup("host.docker.internal"),
    "host": [],
}
for address in sys.argv[1:]:
    kind, _, rest = address.partition(":")
    if kind == "abstract":
        answer = attempt(unix, stream, "\0" + rest)
    else:
        answer = attempt(inet, stream, (kind, int(rest)))
    if answer == "reached":
        found["host"].append(address)
print(json.dumps(found))
`

// wayOut is what outward finds.
type wayOut struct {
	Interfaces []string `json:"interfaces"`
	Routes     []string `json:"routes"`
	Routes6    []string `json:"routes6"`
	TCP        string   `json:"tcp"`
	UDP        string   `json:"udp"`
	TCP6       bool     `json:"tcp6"` // failed as it should
	Name       string   `json:"name"`
	HostName   string   `json:"name of the host"`
	Host       []string `json:"host"` // addresses of the host that were reached
}

// Seen to fail with network: "bridge" instead of "none" in internal/config's
// defaults, and with Network: "bridge" in internal/sandbox/plan's fillSpec.
func TestInvariant_NETWORK_DEFAULT_DENY(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"auto", "docker"} {
		t.Run(backend, func(t *testing.T) { networkIsDenied(t, backend) })
	}
}

func networkIsDenied(t *testing.T, backend string) {
	s := newSite(t)
	s.config = nil // everything by default, but for a name of its own
	s.set("agents.defaults.sandbox.docker.containerPrefix", s.tag+"-")
	s.set("agents.defaults.sandbox.backend", backend)
	s.set("agents.defaults.sandbox.mode", "all")
	arguments := listenOnHost(t, s.tag)
	want := wayOut{
		Interfaces: []string{"lo"}, Routes: []string{}, Routes6: []string{}, TCP: "ENETUNREACH", UDP: "ENETUNREACH", TCP6: true,
		Name: "no answer", HostName: "no answer", Host: []string{},
	}
	a := s.open()
	remove := func() {
		for _, row := range s.rows(a) {
			if r := a.Recreate(t.Context(), row, false); r.Err != nil {
				t.Error(r.Err)
			}
		}
	}
	defer remove()
	look := func(when string) {
		got := s.provide(a, provide.Subject{})
		defer got.Release()
		if !got.Created {
			t.Errorf("%s, it was there already", when)
		}
		var found wayOut
		if err := json.Unmarshal([]byte(sh(t, got, "python3 -c '"+outward+"' "+strings.Join(arguments, " "))), &found); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%s, a default sandbox has a way out (-want +got):\n%s", when, diff)
		}
	}
	look("when it is made")
	remove()
	look("when it is recreated")
}

// listenOnHost opens what a sandbox with the host's network could reach: a port
// on every address, and a socket with an abstract name.
func listenOnHost(t *testing.T, tag string) []string {
	t.Helper()
	port, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = port.Close() })
	socket, err := net.Listen("unix", "@"+tag)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	list := []string{"abstract:" + tag}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil {
			list = append(list, fmt.Sprintf("%s:%d", ip.IP, port.Addr().(*net.TCPAddr).Port))
		}
	}
	return list
}
