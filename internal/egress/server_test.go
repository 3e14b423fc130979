package egress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/egress/dns"
)

// greet sends a word over TLS and returns the answer of the test's servers.
func greet(t *testing.T, w *world, conn net.Conn, name string) string {
	t.Helper()
	client, err := w.net.secure(conn, name)
	if err != nil {
		t.Fatalf("TLS for %s: %v", name, err)
	}
	defer client.Close()
	fmt.Fprint(client, "hello")
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(client)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// A program that knows no proxy and no CA looks a name up, connects and speaks
// TLS with the server of that name.
func TestSpliceEndToEnd(t *testing.T) {
	w := open(t, allow(t, "api.example.com", "*.example.org"))
	w.net.name("api.example.com", "93.184.216.34")
	w.net.name("a.b.example.org", "93.184.216.34")
	w.net.serveTLS(t, "93.184.216.34:443", "api.example.com", "a.b.example.org")
	for _, name := range []string{"api.example.com", "a.b.example.org"} {
		if got := greet(t, w, w.box.dial(t, name, 443), name); got != name+" says: hello" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := w.net.queries(); got != "api.example.com a.b.example.org" {
		t.Errorf("the host asked for %s", got)
	}
	eventually(t, "records of the end", func() bool { return len(w.log.of(audit.EgressClosed)) == 2 })
	closed := w.log.of(audit.EgressClosed) // the relays end in any order
	slices.SortFunc(closed, func(a, b audit.EgressEvent) int { return -strings.Compare(a.Name, b.Name) })
	e := closed[0]
	if e.Name != "api.example.com" || e.Port != 443 || e.Mode != "splice" || e.Route != "93.184.216.34:443" || e.Exec != "exec-1" || e.BytesIn == 0 || e.BytesOut == 0 || e.Reason != "" {
		t.Errorf("record %+v", e)
	}
}

// The same name has the same address, other names have others, and an address
// has its name.
func TestNamesHaveAddresses(t *testing.T) {
	w := open(t, allow(t, "a.example.com", "b.example.com"))
	a, b := w.box.lookup(t, "A.example.com"), w.box.lookup(t, "b.example.com")
	if a == b || w.box.lookup(t, "a.example.COM") != a {
		t.Errorf("addresses %v and %v", a, b)
	}
	m := w.box.ask(t, reverse(a.String()), dnsmessage.TypePTR)
	if len(m.Answers) != 1 || m.Answers[0].Body.(*dnsmessage.PTRResource).PTR.String() != "a.example.com." {
		t.Errorf("the name of %v: %+v", a, m.Answers)
	}
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeAAAA, dnsmessage.TypeTXT, dnsmessage.TypeMX, dnsmessage.TypeALL, 65} {
		if m := w.box.ask(t, "a.example.com", kind); m.RCode != dnsmessage.RCodeSuccess || len(m.Answers) != 0 {
			t.Errorf("type %v: %v, %+v", kind, m.RCode, m.Answers)
		}
	}
	if got := w.box.lookup(t, "localhost").String(); got != "127.0.0.1" {
		t.Errorf("localhost is %s", got)
	}
	if got := w.net.queries(); got != "" {
		t.Errorf("the host asked for %s", got)
	}
}

func reverse(a string) string {
	p := strings.Split(a, ".")
	return p[3] + "." + p[2] + "." + p[1] + "." + p[0] + ".in-addr.arpa"
}

func TestResolverByTCP(t *testing.T) {
	w := open(t, allow(t, "a.example.com"))
	conn, err := w.box.connect(w.box.lookup(t, "localhost"), 53)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 2 {
		if err := dns.WriteMessage(conn, packQuestion(t, "a.example.com", dnsmessage.TypeA)); err != nil {
			t.Fatal(err)
		}
		answer, err := dns.ReadMessage(conn)
		var m dnsmessage.Message
		if err != nil || m.Unpack(answer) != nil || len(m.Answers) != 1 {
			t.Errorf("%v, %+v", err, m)
		}
	}
}

// A refused name fails in the same way for every program: with the reason.
func TestRefusedNames(t *testing.T) {
	w := open(t, allow(t, "api.example.com"))
	conn := w.box.dial(t, "evil.example.net", 80)
	fmt.Fprint(conn, "GET /secret HTTP/1.1\r\nHost: evil.example.net\r\n\r\n")
	if got := ended(conn); !strings.HasPrefix(got, "HTTP/1.1 403 Forbidden") || !strings.Contains(got, "no rule allows evil.example.net on port 80") || !strings.Contains(got, "hint: add") {
		t.Errorf("port 80: %s", got)
	}
	if _, err := w.net.secure(w.box.dial(t, "evil.example.net", 443), "evil.example.net"); err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Errorf("port 443: %v", err)
	}
	eventually(t, "denials", func() bool { return len(w.denials()) == 2 })
	for _, d := range w.denials() {
		if d.Name != "evil.example.net" || d.Reason == "" || !strings.Contains(d.Hint, "evil.example.net") {
			t.Errorf("denial %+v", d)
		}
	}
	if q, c := w.net.queries(), w.net.connections(); q != "" || c != "" {
		t.Errorf("the host asked for %q and connected to %q", q, c)
	}
}

// SSH has no message that says why: the command that looked the name up has the
// refusal in its result.
func TestRefusedSSH(t *testing.T) {
	w := open(t, allow(t, "api.example.com"))
	if got := ended(w.box.dial(t, "git.example.net", 22)); got != "" {
		t.Errorf("answered %q", got)
	}
	eventually(t, "a denial", func() bool { return len(w.denials()) == 1 })
	if d := w.denials()[0]; d.Name != "git.example.net" || d.Port != 22 || !strings.Contains(d.Hint, "git.example.net:22") {
		t.Errorf("denial %+v", d)
	}
	nothingLeft(t, w)
}

func TestTCP(t *testing.T) {
	w := open(t, allow(t, "git.example.com:22"))
	w.net.name("git.example.com", "93.184.216.34")
	w.net.serve(t, "93.184.216.34:22", func(conn net.Conn) { fmt.Fprintln(conn, "SSH-2.0-test"); _, _ = io.Copy(conn, conn) })
	conn := w.box.dial(t, "git.example.com", 22)
	fmt.Fprintln(conn, "SSH-2.0-client")
	r := bufio.NewReader(conn)
	first, _ := r.ReadString('\n')
	second, err := r.ReadString('\n')
	if first != "SSH-2.0-test\n" || second != "SSH-2.0-client\n" {
		t.Errorf("%q, %q, %v", first, second, err)
	}
}
