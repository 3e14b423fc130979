package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen accepts connections on loopback and closes them.
func listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// A name that answers differently the second time: the address that was checked
// is the one that is connected to, and a second connection is checked again.
func TestTheCheckedAddressIsDialled(t *testing.T) {
	n := &names{answers: map[string][]string{"rebind.example": {"93.184.216.34", "127.0.0.1"}}, at: map[string]string{"93.184.216.34:443": listen(t)}}
	d := &outbound.Dialer{Network: n, Rule: outbound.Public()}
	conn, err := d.DialContext(t.Context(), "tcp", "rebind.example:443")
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := d.DialContext(t.Context(), "tcp", "rebind.example:443"); !errors.Is(err, outbound.ErrNotPublic) {
		t.Errorf("got %v", err)
	}
	if !slices.Equal(n.dialled, []string{"93.184.216.34:443"}) {
		t.Errorf("connected to %v", n.dialled)
	}
}

func TestADialerRefusesWhatTheRuleRefuses(t *testing.T) {
	n := &names{answers: map[string][]string{"mixed.example": {"93.184.216.34,10.0.0.1"}, "mapped.example": {"::ffff:127.0.0.1"}, "many.example": {strings.Repeat("8.8.8.8,", 64) + "8.8.8.8"}}}
	d := &outbound.Dialer{Network: n, Rule: outbound.Public(netip.MustParsePrefix("10.9.0.0/16"))}
	for _, address := range []string{"mixed.example:80", "mapped.example:80", "10.0.0.1:80", "[::1]:80", "169.254.169.254:80"} {
		if _, err := d.DialContext(t.Context(), "tcp", address); !errors.Is(err, outbound.ErrNotPublic) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"many.example:80", "nowhere.example:80", "8.8.8.8", "8.8.8.8:99999"} {
		if conn, err := d.DialContext(t.Context(), "tcp", address); err == nil {
			conn.Close()
			t.Errorf("%s was connected to", address)
		}
	}
	if len(n.dialled) != 0 {
		t.Errorf("connected to %v", n.dialled)
	}
	if _, err := d.Resolve(t.Context(), "10.9.1.1"); err != nil {
		t.Errorf("a permitted network: %v", err)
	}
}

// silent never connects to one address and connects to the others.
type silent struct{ *names }

func (s silent) Connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	if to.Addr().String() == "8.8.8.8" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.names.Connect(ctx, to)
}

func TestAnAddressThatDoesNotAnswerLeavesTimeForTheNext(t *testing.T) {
	n := &names{answers: map[string][]string{"two.example": {"8.8.8.8,9.9.9.9"}}, at: map[string]string{"9.9.9.9:80": listen(t)}}
	d := &outbound.Dialer{Network: silent{n}, Rule: outbound.Public(), Timeout: 2 * time.Second}
	conn, err := d.DialContext(t.Context(), "tcp", "two.example:80")
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestRequestsGoThroughTheProxy(t *testing.T) {
	server, caFile := tlsServer(t)
	p := newProxy(t, server)
	at := strings.Replace(p.URL, "http://", "http://person:secret@", 1)
	h := newHost(t, outbound.Options{Getenv: environment("HTTPS_PROXY", at, "http_proxy", p.URL, "NO_PROXY", "direct.invalid"), CAFile: caFile})
	body, err := get(t, h.Transport(), "https://example.com/a")
	if err != nil || body != "HTTP/2.0 example.com" {
		t.Errorf("got %q, %v", body, err)
	}
	if body, err := get(t, h.Transport(), "http://plain.example/b"); err != nil || body != "from the proxy" {
		t.Errorf("got %q, %v", body, err)
	}
	if _, err := get(t, h.Transport(), "http://direct.invalid/"); err == nil {
		t.Error("NO_PROXY was not honoured")
	}
	if got := p.requests(); !slices.Equal(got, []string{"CONNECT example.com:443", "GET http://plain.example/b"}) {
		t.Errorf("the proxy was asked %v", got)
	}
	if p.auth[0] == "" || p.auth[1] != "" {
		t.Errorf("the proxy was sent %q", p.auth)
	}
	shown := fmt.Sprint(h.Proxies())
	if strings.Contains(shown, "secret") || strings.Contains(shown, "person") || !strings.Contains(shown, p.Listener.Addr().String()) || !strings.Contains(shown, "NO_PROXY direct.invalid") {
		t.Errorf("shown as %q", shown)
	}
}

func TestACompanysCertificatesAreTrustedBesideTheSystems(t *testing.T) {
	server, caFile := tlsServer(t)
	p := newProxy(t, server)
	env := environment("HTTPS_PROXY", p.URL)
	if _, err := get(t, newHost(t, outbound.Options{Getenv: env}).Transport(), "https://example.com/"); !unknownAuthority(err) {
		t.Errorf("without the file: %v", err)
	}
	with := newHost(t, outbound.Options{Getenv: env, CAFile: caFile})
	if _, err := get(t, with.Transport(), "https://example.com/"); err != nil {
		t.Error(err)
	}
	only, err := outbound.TrustOnly(caFile)
	if err != nil {
		t.Fatal(err)
	}
	transport := newHost(t, outbound.Options{Getenv: env}).Transport()
	transport.TLSClientConfig = only
	if _, err := get(t, transport, "https://example.com/"); err != nil {
		t.Error(err)
	}
	empty := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{empty, "/nonexistent"} {
		if _, err := outbound.NewHost(outbound.Options{Getenv: env, CAFile: path}); err == nil {
			t.Errorf("%s was accepted", path)
		}
		if _, err := outbound.TrustOnly(path); err == nil {
			t.Errorf("%s was accepted", path)
		}
	}
}

// A proxy that cannot be used must not mean that requests go around it.
func TestABrokenProxyIsAnError(t *testing.T) {
	for _, address := range []string{"ftp://person:secret@proxy:21", "http://", "://x", "http://person:secret@"} {
		_, err := outbound.NewHost(outbound.Options{Getenv: environment("HTTPS_PROXY", address)})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"proxy:3128", "http://proxy", "https://proxy", "socks5://proxy:1080", ""} {
		if _, err := outbound.NewHost(outbound.Options{Getenv: environment("HTTPS_PROXY", address)}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Behind a proxy the address rule holds for what the host's own resolver says.
func TestGuardedBehindAProxy(t *testing.T) {
	server, _ := tlsServer(t)
	p := newProxy(t, server)
	inside := &names{answers: map[string][]string{"localtest.invalid": {"93.184.216.34"}}, at: map[string]string{"93.184.216.34:80": listen(t)}}
	h := newHost(t, outbound.Options{Getenv: environment("HTTP_PROXY", p.URL, "HTTPS_PROXY", p.URL)})
	guarded := h.Guarded(inside, outbound.Public(), true)
	for _, address := range []string{"http://10.0.0.1/", "https://169.254.169.254/", "http://[fd00:ec2::254]/"} {
		if _, err := get(t, guarded, address); !errors.Is(err, outbound.ErrNotPublic) {
			t.Errorf("%s: %v", address, err)
		}
	}
	// The sandbox's answer for a name does not count: the host cannot resolve it.
	if _, err := get(t, guarded, "http://localtest.invalid/"); err == nil {
		t.Error("a name that the host cannot resolve was asked of the proxy")
	}
	if body, err := get(t, guarded, "http://8.8.8.8/page"); err != nil || body != "from the proxy" {
		t.Errorf("got %q, %v", body, err)
	}
	if got := p.requests(); !slices.Equal(got, []string{"GET http://8.8.8.8/page"}) {
		t.Errorf("the proxy was asked %v", got)
	}
	if len(inside.dialled) != 0 {
		t.Errorf("the sandbox's network was asked for %v", inside.dialled)
	}
	// Without the permission to use it, the proxy is not asked at all.
	if _, err := get(t, h.Guarded(inside, outbound.Public(), false), "http://localtest.invalid/"); err == nil || len(inside.dialled) != 1 || len(p.requests()) != 1 {
		t.Errorf("%v, dialled %v, proxy %v", err, inside.dialled, p.requests())
	}
}
