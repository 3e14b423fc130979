package egress_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress"
)

// public is a policy that allows every public name.
func public(t *testing.T, change ...func(*config.Egress)) *world {
	return open(t, policy(t, func(e *config.Egress) {
		e.Mode = config.EgressPublic
		for _, f := range change {
			f(e)
		}
	}))
}

// nothingLeft checks that the host asked for no name and connected to nothing.
func nothingLeft(t *testing.T, w *world) {
	t.Helper()
	if q, c := w.net.queries(), w.net.connections(); q != "" || c != "" {
		t.Errorf("the host asked for %q and connected to %q", q, c)
	}
}

var addressSpellings = []string{
	"127.0.0.1", "127.1", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[fe80::1%25eth0]",
	"[fe80::1%eth0]", "[example.com]", "10.0.0.1", "169.254.169.254", "8.8.8.8", "[2606:4700::1111]", "127.0.0.1.", "1.2.3.4.5", "0",
}

// An address in place of a name is refused in every spelling.
func TestAttack03_AddressesInPlaceOfNames(t *testing.T) {
	w := public(t)
	for _, host := range addressSpellings {
		if got := tunnel(t, w.box.proxy(t), host+":443"); !strings.HasPrefix(got, "403") && !strings.HasPrefix(got, "400") {
			t.Errorf("CONNECT %s: %s", host, got)
		}
		conn := w.box.proxy(t)
		fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: example.com\r\n\r\n", host)
		if got := ended(conn); !strings.HasPrefix(got, "HTTP/1.1 403") && !strings.HasPrefix(got, "HTTP/1.1 400") {
			t.Errorf("GET http://%s/: %s", host, got)
		}
		name := strings.Trim(host, "[]")
		if reply := socks(t, w.box.proxy(t), "\x03"+string(rune(len(name)))+name, 443); reply != 2 && name != "example.com" {
			t.Errorf("SOCKS %s: %d", name, reply)
		}
	}
	for _, target := range []string{"\x01\x7f\x00\x00\x01", "\x01\x08\x08\x08\x08", "\x04" + strings.Repeat("\x00", 15) + "\x01"} {
		if reply := socks(t, w.box.proxy(t), target, 443); reply != 2 {
			t.Errorf("SOCKS address %x: %d", target, reply)
		}
	}
	nothingLeft(t, w)
}

// reached reports how a TLS connection to a name ends.
func reached(t *testing.T, w *world, name string) error {
	t.Helper()
	client, err := w.net.secure(w.box.dial(t, name, 443), name)
	if err == nil {
		_ = client.Close()
	}
	return err
}

// A name whose answers hold an address that is not public is not connected to,
// whatever else they hold and whatever they said before.
func TestAttack04_Rebinding(t *testing.T) {
	w := public(t)
	w.net.serveTLS(t, "93.184.216.34:443", "moving.example.com", "many.example.com")
	w.net.serveTLS(t, "10.0.0.1:443", "moving.example.com", "mixed.example.com", "inner.example.com")
	many := strings.TrimSuffix(strings.Repeat("93.184.216.34,", 64), ",")
	w.net.name("moving.example.com", "93.184.216.34", "10.0.0.1")
	w.net.name("mixed.example.com", "93.184.216.34,10.0.0.1")
	w.net.name("mixed6.example.com", "93.184.216.34,fd00::1")
	w.net.name("inner.example.com", "10.0.0.1")
	w.net.name("mapped.example.com", "::ffff:10.0.0.1")
	w.net.name("many.example.com", many)
	w.net.name("toomany.example.com", many+",93.184.216.35")
	if err := reached(t, w, "moving.example.com"); err != nil {
		t.Errorf("the first answer: %v", err)
	}
	for _, name := range []string{"moving.example.com", "mixed.example.com", "mixed6.example.com", "inner.example.com", "mapped.example.com", "toomany.example.com"} {
		if err := reached(t, w, name); err == nil {
			t.Errorf("%s was reached", name)
		}
	}
	if err := reached(t, w, "many.example.com"); err != nil {
		t.Errorf("64 addresses: %v", err)
	}
	if d := w.denials(); len(d) == 0 || !strings.Contains(d[0].Reason, "not on the public internet") || !strings.Contains(d[0].Hint, "sandbox.egress.private") {
		t.Errorf("denials %+v", d)
	}
	if got := w.net.connections(); strings.Contains(got, "10.0.0.1") || strings.Contains(got, "fd00") {
		t.Errorf("connected to %s", got)
	}
}

// A CNAME says nothing about where a name may lead; its address does.
func TestAttack04_CNAME(t *testing.T) {
	w := public(t)
	w.net.name("alias.example.com", "db.internal,10.0.0.1")
	w.net.name("db.internal", "10.0.0.1")
	if err := reached(t, w, "alias.example.com"); err == nil {
		t.Error("an internal server was reached by an alias")
	}
	if got := w.net.connections(); got != "" {
		t.Errorf("connected to %s", got)
	}
}

// Ports without a rule, and the proxy and the host by their local names.
func TestAttack16_Ports(t *testing.T) {
	w := public(t)
	w.net.name("mail.example.com", "93.184.216.34")
	w.net.name("inner.example.com", "127.0.0.1")
	for _, port := range []int{25, 22, 465, 3306, 18789, egress.ProxyPort, 53} {
		if _, err := w.box.connect(w.box.lookup(t, "mail.example.com"), port); err == nil {
			t.Errorf("port %d is open", port)
		}
		if got := tunnel(t, w.box.proxy(t), fmt.Sprintf("mail.example.com:%d", port)); !strings.HasPrefix(got, "403") {
			t.Errorf("CONNECT to port %d: %s", port, got)
		}
		for _, host := range []string{"localhost", "127.0.0.1", "host.docker.internal", "gateway"} {
			if got := tunnel(t, w.box.proxy(t), fmt.Sprintf("%s:%d", host, port)); !strings.HasPrefix(got, "403") {
				t.Errorf("CONNECT %s:%d: %s", host, port, got)
			}
		}
	}
	nothingLeft(t, w)
	if err := reached(t, w, "inner.example.com"); err == nil || w.net.connections() != "" {
		t.Errorf("a name of the host itself: %v, %s", err, w.net.connections())
	}
}

// Metadata services are out of reach by every name, also with all networks
// opened.
func TestAttack17_Metadata(t *testing.T) {
	w := public(t, func(e *config.Egress) {
		e.Private = prefixes("169.254.0.0/16", "100.64.0.0/10", "fc00::/7", "168.63.129.0/24", "192.0.0.0/24")
	})
	for i, address := range []string{"169.254.169.254", "169.254.170.2", "fd00:ec2::254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"} {
		name := fmt.Sprintf("meta%d.example.com", i)
		w.net.name(name, address)
		w.net.serveTLS(t, net.JoinHostPort(address, "443"), name)
		if err := reached(t, w, name); err == nil {
			t.Errorf("%s was reached", address)
		}
	}
	for _, name := range []string{"metadata.google.internal", "metadata.goog", "instance-data"} {
		if got := tunnel(t, w.box.proxy(t), name+":80"); !strings.HasPrefix(got, "403") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := w.net.connections(); got != "" {
		t.Errorf("connected to %s", got)
	}
}

// Private networks are open for names that a rule names, and not for those that
// the mode allows: a stranger can have any name lead anywhere.
func TestPrivateNetworksAreForNamedHosts(t *testing.T) {
	w := open(t, policy(t, func(e *config.Egress) { e.Mode, e.Private = config.EgressPublic, prefixes("100.64.0.0/10") }, "inner.example.com"))
	for name, address := range map[string]string{"inner.example.com": "100.64.0.7", "stranger.example.net": "100.64.0.8"} {
		w.net.name(name, address)
		w.net.serveTLS(t, address+":443", name)
	}
	if err := reached(t, w, "inner.example.com"); err != nil {
		t.Errorf("a private network of a named host: %v", err)
	}
	if err := reached(t, w, "stranger.example.net"); err == nil {
		t.Error("a private network was reached by a name that no rule has")
	}
}

// A host whose resolver makes addresses up gets an explanation; the network can
// be named.
func TestAttack26_FakeAddresses(t *testing.T) {
	w := public(t)
	w.net.name("www.example.com", "198.18.0.9")
	if err := reached(t, w, "www.example.com"); err == nil {
		t.Error("it was reached")
	}
	eventually(t, "the explanation", func() bool { return len(w.denials()) == 1 && strings.Contains(w.denials()[0].Hint, "Clash") })
	w = public(t, func(e *config.Egress) { e.Private = prefixes("198.18.0.0/15") })
	w.net.name("www.example.com", "198.18.0.9")
	w.net.serveTLS(t, "198.18.0.9:443", "www.example.com")
	if err := reached(t, w, "www.example.com"); err != nil {
		t.Errorf("with the network named: %v", err)
	}
}
