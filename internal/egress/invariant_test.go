package egress_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/outbound"
)

// Without a rule nothing is reached, by any of the ways out.
func TestInvariant_EGRESS_DEFAULT_DENY(t *testing.T) {
	for _, mode := range []config.EgressMode{"", config.EgressOff, config.EgressEnforce} {
		w := open(t, policy(t, func(e *config.Egress) { e.Mode = mode }))
		w.net.name("www.example.com", "93.184.216.34")
		w.net.serveTLS(t, "93.184.216.34:443", "www.example.com")
		w.net.serveHTTP(t, "93.184.216.34:80")
		if err := reached(t, w, "www.example.com"); err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("mode %q, TLS: %v", mode, err)
		}
		conn := w.box.dial(t, "www.example.com", 80)
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
		if got := ended(conn); !strings.HasPrefix(got, "HTTP/1.1 403") {
			t.Errorf("mode %q, HTTP: %s", mode, got)
		}
		if got := tunnel(t, w.box.proxy(t), "www.example.com:443"); !strings.HasPrefix(got, "403") {
			t.Errorf("mode %q, CONNECT: %s", mode, got)
		}
		if reply := socks(t, w.box.proxy(t), "\x03\x0fwww.example.com", 443); reply != 2 {
			t.Errorf("mode %q, SOCKS: %d", mode, reply)
		}
		nothingLeft(t, w)
	}
}

// The name that is asked for, judged and resolved is the server name of TLS and
// the Host of HTTP: of all pairs of names only equal ones pass.
func TestInvariant_EGRESS_ONE_NAME(t *testing.T) {
	names := []string{"a.example.com", "b.example.com", "a.b.example.com", "evil-a.example.com", "a.example.com.evil.net", "example.com"}
	w := open(t, allow(t, "a.example.com", "b.example.com", "*.b.example.com", "a.example.com:80", "b.example.com:80", "a.b.example.com:80"))
	allowed := names[:3]
	for i, name := range names {
		w.net.name(name, "93.184.216."+fmt.Sprint(i+1))
		w.net.serveTLS(t, fmt.Sprintf("93.184.216.%d:443", i+1), names...)
		w.net.serveHTTP(t, fmt.Sprintf("93.184.216.%d:80", i+1))
	}
	for _, asked := range names {
		for _, said := range names {
			before := w.net.queries()
			client, err := w.net.secure(w.box.dial(t, asked, 443), said)
			_ = client.Close()
			passed := w.net.queries() != before
			if want := asked == said && slices.Contains(allowed, asked); want != passed || want != (err == nil) {
				t.Errorf("asked for %s, TLS for %s: passed %v, %v", asked, said, passed, err)
			}
			before = w.net.queries()
			conn := w.box.dial(t, asked, 80)
			fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", said)
			got := ended(conn)
			passed = w.net.queries() != before
			if want := asked == said && slices.Contains(allowed, asked); want != passed || want != strings.Contains(got, "200 OK") {
				t.Errorf("asked for %s, Host %s: passed %v, %s", asked, said, passed, got)
			}
		}
	}
	for name := range strings.FieldsSeq(w.net.queries()) {
		if !slices.Contains(allowed, name) {
			t.Errorf("the host asked for %s", name)
		}
	}
}

// What is connected to is an address that was checked: every answer of the
// resolver is public or in a network that is named, or nothing is connected to.
func TestInvariant_EGRESS_CHECKED_ADDRESS(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	private := prefixes("10.2.3.0/24")
	permitted := outbound.Public(private...)
	w := open(t, policy(t, func(e *config.Egress) { e.Private, e.Limits.NewPerMinute = private, 100_000 }, "*.example.com"))
	pool := []string{"93.184.216.34", "8.8.8.8", "2606:4700::1111", "10.2.3.4", "10.2.4.4", "127.0.0.1", "169.254.169.254", "::1", "fd00::1", "198.18.0.1", "100.64.0.1", "192.168.1.1", "::ffff:10.0.0.1"}
	for i := range 200 {
		name := fmt.Sprintf("n%d.example.com", i)
		var answers []string
		allPermitted := true
		for range 1 + random.IntN(3) {
			a := pool[random.IntN(len(pool))]
			answers = append(answers, a)
			allPermitted = allPermitted && permitted(netip.MustParseAddr(a)) == nil
		}
		w.net.name(name, strings.Join(answers, ","))
		before := len(strings.Fields(w.net.connections()))
		_ = reached(t, w, name)
		dialled := strings.Fields(w.net.connections())[before:]
		if allPermitted != (len(dialled) > 0) {
			t.Errorf("%s at %v: connected to %v", name, answers, dialled)
		}
		for _, to := range dialled {
			a := netip.MustParseAddrPort(to)
			if permitted(a.Addr()) != nil || a.Port() != 443 {
				t.Errorf("%s at %v: connected to %v", name, answers, to)
			}
		}
	}
}

// No question of the sandbox leaves the host: a name is resolved when it is
// connected to, once, and as it was judged.
func TestInvariant_EGRESS_NO_QUERY_LEAVES(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	w := open(t, allow(t, "api.example.com", "*.example.org"))
	w.net.name("api.example.com", "93.184.216.34")
	w.net.serveTLS(t, "93.184.216.34:443", "api.example.com")
	for range 300 {
		name := []string{"api.example.com", "x.example.org", "evil.example.net", "4.3.2.1.in-addr.arpa"}[random.IntN(4)]
		w.box.ask(t, name, dnsmessage.Type(random.IntN(300)))
	}
	raw := packQuestion(t, "evil.example.net", dnsmessage.TypeA)
	for range 300 {
		mutated := slices.Clone(raw)
		mutated[2+random.IntN(len(mutated)-2)] = byte(random.Uint32())
		w.box.send(t, mutated)
	}
	w.box.lookup(t, "api.example.com")
	if got := w.net.queries(); got != "" {
		t.Errorf("before any connection the host asked for %s", got)
	}
	if err := reached(t, w, "api.example.com"); err != nil {
		t.Fatal(err)
	}
	if got := w.net.queries(); got != "api.example.com" {
		t.Errorf("for one connection the host asked for %s", got)
	}
}

// The record of a connection is written before the name is resolved, in every
// mode and by every way; if it cannot be written, nothing leaves.
func TestInvariant_EGRESS_AUDITED(t *testing.T) {
	w := open(t, allow(t, "a.example.com", "a.example.com:80", "a.example.com:22", `{host: "i.example.com", methods: ["GET"]}`))
	w.net.name("a.example.com", "93.184.216.34")
	w.net.name("i.example.com", "93.184.216.34")
	ways := map[string]func(){
		"splice":  func() { _ = reached(t, w, "a.example.com") },
		"http":    func() { request(t, w, "a.example.com", 80) },
		"tcp":     func() { _ = ended(w.box.dial(t, "a.example.com", 22)) },
		"inspect": func() { inspected(t, w, "i.example.com") },
		"connect": func() {
			c := w.box.proxy(t)
			tunnel(t, c, "a.example.com:443")
			_, _ = w.net.secure(c, "a.example.com")
		},
		"socks": func() { c := w.box.proxy(t); socks(t, c, "\x03\x0da.example.com", 22); _ = ended(c) },
	}
	for what, try := range ways {
		w.log.failWith(errors.New("no space left"))
		before, connected := w.net.queries(), w.net.connections()
		try()
		if w.net.queries() != before || w.net.connections() != connected {
			t.Errorf("%s: something left without a record", what)
		}
		var atRecord string
		w.log.watch(func(e audit.EgressEvent) {
			if e.Event == audit.EgressOpened {
				atRecord = "written"
				if got := w.net.queries(); got != before {
					atRecord = "written after " + got
				}
			}
		})
		try()
		eventually(t, what+": a query", func() bool { return w.net.queries() != before })
		w.log.watch(nil)
		if atRecord != "written" {
			t.Errorf("%s: the record was %q", what, atRecord)
		}
	}
}

// request sends a plain request to a port of a name.
func request(t *testing.T, w *world, name string, port int) {
	t.Helper()
	conn := w.box.dial(t, name, port)
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name)
	_ = ended(conn)
}

// inspected sends a request by TLS that is ended by the host.
func inspected(t *testing.T, w *world, name string) {
	t.Helper()
	client := tls.Client(w.box.dial(t, name, 443), &tls.Config{ServerName: name, InsecureSkipVerify: true})
	fmt.Fprintf(client, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name)
	_ = ended(client)
}
