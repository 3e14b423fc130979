package egress_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/outbound"
)

// setPolicy puts other rules in force, with the inspector that there is.
func (w *world) setPolicy(p *rule.Policy) {
	w.server.SetRules(egress.Rules{Policy: p, Inspect: w.inspector})
}

// isReset reads a connection to its end, which must be a reset and come soon.
func isReset(t *testing.T, conn net.Conn) {
	t.Helper()
	begin := time.Now()
	_, err := io.Copy(io.Discard, conn)
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v", err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("it took %v", took)
	}
}

// A rule is removed during a transfer: that connection is reset at both ends and recorded,
// others go on, and the name is refused from then on.
func TestAttack23_RuleRemoved(t *testing.T) {
	upstream := make(chan error, 1)
	w := open(t, allow(t, "gone.example.com:7", "kept.example.com:7"))
	w.net.name("gone.example.com", "93.184.216.34")
	w.net.name("kept.example.com", "93.184.216.35")
	w.net.serve(t, "93.184.216.35:7", echo)
	w.net.serve(t, "93.184.216.34:7", func(conn net.Conn) {
		for block := make([]byte, 32<<10); ; {
			if _, err := conn.Write(block); err != nil {
				upstream <- err
				return
			}
		}
	})
	kept, gone := w.box.dial(t, "kept.example.com", 7), w.box.dial(t, "gone.example.com", 7)
	if _, err := io.ReadFull(gone, make([]byte, 1<<20)); err != nil || !alive(t, kept) {
		t.Fatalf("before the change: %v", err)
	}
	w.setPolicy(allow(t, "kept.example.com:7"))
	isReset(t, gone)
	if err := <-upstream; err == nil {
		t.Error("the server can go on")
	}
	if !alive(t, kept) {
		t.Error("a connection that is still allowed was closed")
	}
	if reason := why(t, w); !strings.Contains(reason, "the rules changed while it was open: no rule allows gone.example.com") {
		t.Errorf("ended because %q", reason)
	}
	if d := w.denials(); len(d) != 1 || d[0].Hint == "" {
		t.Errorf("denials %+v", d)
	}
	if a := w.box.lookup(t, "gone.example.com"); a.As4()[2] != 255 {
		t.Errorf("the name is at %v", a)
	}
}

// What is not refused, but treated in another way by other rules, does not go on either.
func TestAttack23_OtherTreatment(t *testing.T) {
	private := func(e *config.Egress) { e.Private = prefixes("10.1.2.0/24") }
	for what, c := range map[string]struct{ before, after *rule.Policy }{
		"another mode":             {policy(t, private, "raw.example.com:443"), policy(t, private, `{host: "raw.example.com", methods: ["GET"]}`)},
		"a network that is closed": {policy(t, private, "raw.example.com:443"), allow(t, "raw.example.com:443")},
		"another way":              {policy(t, private, "raw.example.com:443"), policy(t, func(e *config.Egress) { private(e); e.Upstream = "http://10.1.2.9:3128" }, "raw.example.com:443")},
		"denied":                   {policy(t, private, "raw.example.com:443"), policy(t, func(e *config.Egress) { private(e); e.Deny = []config.EgressDeny{{Host: "raw.example.com"}} }, "raw.example.com:443")},
		"nothing":                  {policy(t, private, "raw.example.com:443"), rule.Nothing()},
	} {
		w := open(t, c.before)
		w.net.name("raw.example.com", "10.1.2.3")
		w.net.serveTLS(t, "10.1.2.3:443", "raw.example.com")
		conn := w.box.dial(t, "raw.example.com", 443)
		client := tls.Client(conn, &tls.Config{ServerName: "raw.example.com", RootCAs: w.net.roots, MinVersion: tls.VersionTLS12})
		if err := client.HandshakeContext(t.Context()); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		w.setPolicy(c.after)
		isReset(t, conn)
		if reason := why(t, w); !strings.HasPrefix(reason, "the rules changed") {
			t.Errorf("%s: ended because %q", what, reason)
		}
	}
}

// A rule no longer allows the request that is being answered.
func TestAttack23_RequestRefused(t *testing.T) {
	rules := func(method string) *rule.Policy {
		return policy(t, func(*config.Egress) {}, fmt.Sprintf(`{host: "api.example.com", ports: [80], methods: [%q]}`, method))
	}
	w := open(t, rules("GET"))
	w.net.name("api.example.com", "93.184.216.34")
	w.net.serve(t, "93.184.216.34:80", func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
		repeat(conn, "x")
	})
	conn := w.box.dial(t, "api.example.com", 80)
	fmt.Fprint(conn, "GET /large HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
	if _, err := io.ReadFull(conn, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	w.setPolicy(rules("POST"))
	isReset(t, conn)
	if reason := why(t, w); !strings.Contains(reason, "method GET is not in the rule") {
		t.Errorf("ended because %q", reason)
	}
}

// Other secrets mean another inspector: connections of the one before end.
func TestAttack23_OtherSecrets(t *testing.T) {
	p := allow(t, "api.example.com:80")
	w := open(t, p)
	w.net.name("api.example.com", "93.184.216.34")
	w.net.serve(t, "93.184.216.34:80", func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
		_, _ = io.Copy(io.Discard, conn)
	})
	conn := w.box.dial(t, "api.example.com", 80)
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
	if _, err := io.ReadFull(conn, make([]byte, 20)); err != nil {
		t.Fatal(err)
	}
	other, err := inspect.Open(inspect.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w.server.SetRules(egress.Rules{Policy: p, Inspect: other})
	isReset(t, conn)
}

// The rules change while a person is being asked: the yes was to the rules before.
func TestAttack23_ChangedWhileAsked(t *testing.T) {
	ready := make(chan *world, 1)
	w := open(t, policy(t, func(e *config.Egress) { e.Mode = config.EgressAsk }), func(o *egress.Options) {
		o.Ask = func(context.Context, egress.Question) (bool, error) {
			(<-ready).setPolicy(rule.Nothing())
			return true, nil
		}
	})
	ready <- w
	w.net.name("new.example.com", "93.184.216.34")
	w.net.serveTLS(t, "93.184.216.34:443", "new.example.com")
	if err := reached(t, w, "new.example.com"); err == nil || w.net.connections() != "" {
		t.Errorf("%v, connected to %q", err, w.net.connections())
	}
}

// changing is a network during whose answers the rules change.
type changing struct {
	outbound.Network
	change func()
}

func (c changing) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	c.change()
	return c.Network.Lookup(ctx, host)
}

// The rules change while a name is resolved for a connection.
func TestAttack23_ChangedWhileDialled(t *testing.T) {
	ready := make(chan *world, 1)
	w := open(t, policy(t, func(e *config.Egress) { e.Private = prefixes("10.1.2.0/24") }, "raw.example.com:7"), func(o *egress.Options) {
		o.Network = changing{o.Network, func() { (<-ready).setPolicy(allow(t, "raw.example.com:7")) }}
	})
	ready <- w
	w.net.name("raw.example.com", "10.1.2.3")
	w.net.serve(t, "10.1.2.3:7", echo)
	conn, err := w.box.connect(w.box.lookup(t, "raw.example.com"), 7)
	if err != nil {
		return // it was reset before the program knew that it was open
	}
	defer conn.Close()
	if alive(t, conn) {
		t.Error("it goes on in a network that was closed meanwhile")
	}
}

// Limits count at once, for what is open too.
func TestAttack23_LowerLimits(t *testing.T) {
	c := &clock{}
	w := limited(t, func(*config.EgressLimits) {}, echo, c.use)
	conn := w.box.dial(t, "raw.example.com", 7)
	if !alive(t, conn) {
		t.Fatal("no echo")
	}
	c.advance(20 * time.Second)
	w.setPolicy(policy(t, func(e *config.Egress) { e.Limits.LifeSeconds = 10 }, "raw.example.com:7"))
	w.server.Sweep()
	isReset(t, conn)
	if reason := why(t, w); !strings.Contains(reason, "lifeSeconds") {
		t.Errorf("ended because %q", reason)
	}
}

// Rules change all the time while programs connect: when nothing is allowed in the end,
// nothing is open.
func TestAttack23_Race(t *testing.T) {
	w := limited(t, func(l *config.EgressLimits) { l.NewPerMinute = 100_000 }, echo)
	on, off := w.server.Policy(), rule.Nothing()
	a := w.box.lookup(t, "raw.example.com")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			if conn, err := w.box.connect(a, 7); err == nil {
				defer conn.Close()
			}
		}
	}()
	for range 200 {
		w.setPolicy(off)
		w.setPolicy(on)
	}
	<-done
	w.setPolicy(off)
	eventually(t, "the end of all connections", func() bool { n, _ := w.server.OpenConnections(); return n == 0 })
	eventually(t, "a record of the end for each of the beginning", func() bool {
		return len(w.log.of(audit.EgressOpened)) == len(w.log.of(audit.EgressClosed))
	})
}
