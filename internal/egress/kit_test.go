package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/outbound"
)

// sandbox is a sandbox on real loopback addresses. Its ports are any free ones,
// so that tests need no privileges; programs find them by the address and port
// that the server asked for.
type sandbox struct {
	mu   sync.Mutex
	next int
	at   map[netip.AddrPort]string
	udp  net.PacketConn
	most int // listeners that were open at the same time
	room int // for so many listeners; 0 is any number
}

func newSandbox() *sandbox { return &sandbox{at: map[netip.AddrPort]string{}} }

func (b *sandbox) Listen(ctx context.Context, a netip.Addr, port int) (net.Listener, netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !a.IsValid() {
		b.next++
		a = netip.AddrFrom4([4]byte{127, 77, byte(b.next >> 8 % 255), byte(b.next)})
	}
	key := netip.AddrPortFrom(a, uint16(port))
	if b.at[key] != "" {
		return nil, a, syscall.EADDRINUSE
	}
	if b.room > 0 && len(b.at) >= b.room {
		return nil, a, errors.New("too many listeners")
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", a.String()+":0")
	if err != nil {
		return nil, a, err
	}
	b.at[key] = l.Addr().String()
	b.most = max(b.most, len(b.at))
	return &boxListener{Listener: l, box: b, key: key}, a, nil
}

// boxListener is a port of the sandbox. Its connections have the command that
// connected.
type boxListener struct {
	net.Listener
	box *sandbox
	key netip.AddrPort
}

func (l *boxListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &boxConn{conn.(*net.TCPConn)}, nil
}

func (l *boxListener) Close() error {
	l.box.mu.Lock()
	delete(l.box.at, l.key)
	l.box.mu.Unlock()
	return l.Listener.Close()
}

type boxConn struct{ *net.TCPConn }

func (*boxConn) Exec() string { return "exec-1" }

func (b *sandbox) ListenDatagrams(ctx context.Context, _ int) (egress.Datagrams, error) {
	conn, err := new(net.ListenConfig).ListenPacket(ctx, "udp", "127.0.0.1:0")
	b.udp = conn
	return &boxDatagrams{conn}, err
}

type boxDatagrams struct{ net.PacketConn }

func (d *boxDatagrams) Receive(ctx context.Context) (egress.Datagram, error) {
	defer context.AfterFunc(ctx, func() { _ = d.SetReadDeadline(time.Unix(1, 0)) })()
	b := make([]byte, 4096)
	n, from, err := d.ReadFrom(b)
	if err != nil {
		return egress.Datagram{}, err
	}
	return egress.Datagram{From: from.(*net.UDPAddr).AddrPort(), Exec: "exec-1", Data: b[:n]}, nil
}

func (d *boxDatagrams) Send(m egress.Datagram) error {
	_, err := d.WriteTo(m.Data, net.UDPAddrFromAddrPort(m.From))
	return err
}

// ask sends a question and returns the answer.
func (b *sandbox) ask(t testing.TB, name string, kind dnsmessage.Type) dnsmessage.Message {
	t.Helper()
	m, err := b.exchange(packQuestion(t, name, kind))
	if err != nil {
		t.Fatalf("asking for %s: %v", name, err)
	}
	return m
}

func packQuestion(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	n, err := dnsmessage.NewName(name + ".")
	if err != nil {
		t.Fatal(err)
	}
	q := dnsmessage.Message{Header: dnsmessage.Header{ID: 9, RecursionDesired: true}, Questions: []dnsmessage.Question{{Name: n, Type: kind, Class: dnsmessage.ClassINET}}}
	packed, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func (b *sandbox) exchange(question []byte) (m dnsmessage.Message, err error) {
	conn, err := net.Dial("udp", b.udp.LocalAddr().String())
	if err != nil {
		return m, err
	}
	defer conn.Close()
	answer := make([]byte, 4096)
	for range 20 { // as programs do: a datagram may be lost
		if _, err := conn.Write(question); err != nil {
			return m, err
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := conn.Read(answer); err == nil {
			return m, m.Unpack(answer[:n])
		}
	}
	return m, errors.New("no answer")
}

// send sends a datagram to the resolver and waits for no answer.
func (b *sandbox) send(t testing.TB, raw []byte) {
	t.Helper()
	conn, err := net.Dial("udp", b.udp.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write(raw)
}

// lookup returns the address that a program gets for a name.
func (b *sandbox) lookup(t testing.TB, name string) netip.Addr {
	t.Helper()
	m := b.ask(t, name, dnsmessage.TypeA)
	if len(m.Answers) != 1 {
		t.Fatalf("%s: %v, %d answers", name, m.RCode, len(m.Answers))
	}
	return netip.AddrFrom4(m.Answers[0].Body.(*dnsmessage.AResource).A)
}

// mostListeners returns how many listeners were open at the same time.
func (b *sandbox) mostListeners() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most
}

// connect connects to an address of the sandbox.
func (b *sandbox) connect(a netip.Addr, port int) (net.Conn, error) {
	b.mu.Lock()
	at := b.at[netip.AddrPortFrom(a, uint16(port))]
	b.mu.Unlock()
	if at == "" {
		return nil, syscall.ECONNREFUSED
	}
	conn, err := net.Dial("tcp", at)
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	}
	return conn, err
}

// dial does what a program does: it looks a name up and connects.
func (b *sandbox) dial(t testing.TB, name string, port int) net.Conn {
	t.Helper()
	conn, err := b.connect(b.lookup(t, name), port)
	if err != nil {
		t.Fatalf("%s:%d: %v", name, port, err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// proxy connects to the proxy of the sandbox.
func (b *sandbox) proxy(t testing.TB) net.Conn {
	t.Helper()
	conn, err := b.connect(netip.MustParseAddr("127.0.0.1"), egress.ProxyPort)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// records are the audit log of a test. With fail set it cannot be written.
type records struct {
	mu   sync.Mutex
	list []audit.EgressEvent
	fail error
	seen func(audit.EgressEvent)
}

func (r *records) write(e *audit.EgressEvent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return r.fail
	}
	r.list = append(r.list, *e)
	if r.seen != nil {
		r.seen(*e)
	}
	return nil
}

func (r *records) failWith(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

// watch has a function called with each record, and lets the log be written.
func (r *records) watch(seen func(audit.EgressEvent)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail, r.seen = nil, seen
}

// of returns the records of one event.
func (r *records) of(event string) (list []audit.EgressEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.list {
		if e.Event == event {
			list = append(list, e)
		}
	}
	return list
}

// world is a server with all around it.
type world struct {
	box       *sandbox
	net       *internet
	log       *records
	server    *egress.Server
	inspector egress.Inspector
	denials   func() []egress.Denial
}

// open starts a server with a policy.
func open(t testing.TB, policy *rule.Policy, change ...func(*egress.Options)) *world {
	t.Helper()
	w := &world{box: newSandbox(), net: newInternet(t), log: &records{}}
	host, err := outbound.NewHost(outbound.Options{Getenv: func(string) string { return "" }, CAFile: w.net.caFile(t)})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var denials []egress.Denial
	w.denials = func() []egress.Denial { mu.Lock(); defer mu.Unlock(); return slices.Clone(denials) }
	o := egress.Options{
		Rules: egress.Rules{Policy: policy}, Inside: w.box, Outbound: host, Network: w.net, Audit: w.log.write, Subject: audit.Subject{Agent: "main"}, Sandbox: "sbx",
		Denied: func(_ string, d egress.Denial) { mu.Lock(); defer mu.Unlock(); denials = append(denials, d) },
	}
	o.Inspect, err = inspect.Open(inspect.Options{Dir: t.TempDir(), Host: host})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(&o)
	}
	w.inspector = o.Inspect
	if w.server, err = egress.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.server.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// allow compiles rules in the mode enforce.
func allow(t testing.TB, rules ...string) *rule.Policy {
	return policy(t, func(e *config.Egress) {}, rules...)
}

func policy(t testing.TB, change func(*config.Egress), rules ...string) *rule.Policy {
	t.Helper()
	e := &config.Egress{Mode: config.EgressEnforce, Limits: config.EgressLimits{
		Connections: 64, NewPerMinute: 600, BytesOut: 256 << 20, BytesIn: 8 << 30, IdleSeconds: 300, LifeSeconds: 3600,
	}}
	for _, text := range rules {
		if err := e.AllowRule(text); err != nil {
			t.Fatal(err)
		}
	}
	change(e)
	p, err := rule.Compile(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// ended reads a connection to its end, whichever way it ends.
func ended(conn net.Conn) string {
	b, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		return fmt.Sprintf("%s [%v]", b, err)
	}
	return strings.TrimSpace(string(b))
}

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}
