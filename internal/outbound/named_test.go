package outbound_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/outbound"
)

// server is a TCP server that handles each connection with one function.
func server(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); handle(conn) }()
		}
	}()
	return l.Addr().String()
}

// echo answers with a greeting and what it was sent.
func echo(conn net.Conn) {
	fmt.Fprint(conn, "hello ")
	_, _ = io.Copy(conn, conn)
}

// talk sends a word and returns the greeting with the echo.
func talk(t *testing.T, conn net.Conn) string {
	t.Helper()
	defer conn.Close()
	if _, ok := conn.(interface{ CloseWrite() error }); !ok {
		t.Errorf("%T cannot be closed in one direction", conn)
	}
	fmt.Fprint(conn, "world")
	answer := make([]byte, len("hello world"))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestNamesAreDialledAtACheckedAddress(t *testing.T) {
	at := server(t, echo)
	network := &names{answers: map[string][]string{
		"good.example.": {"93.184.216.34"}, "mixed.example.": {"93.184.216.34,10.0.0.1"}, "moving.example.": {"93.184.216.34", "127.0.0.1"},
	}, at: map[string]string{"93.184.216.34:443": at}}
	d := &outbound.NameDialer{Host: newHost(t, outbound.Options{Getenv: environment()}), Network: network, Rule: outbound.Public()}
	for _, name := range []string{"good.example", "moving.example"} {
		conn, route, err := d.Dial(t.Context(), name, 443)
		if err != nil {
			t.Fatal(err)
		}
		if got := talk(t, conn); got != "hello world" || route.String() != "93.184.216.34:443" {
			t.Errorf("%s: %q by %v", name, got, route)
		}
	}
	if _, _, err := d.Dial(t.Context(), "mixed.example", 443); !errors.Is(err, outbound.ErrNotPublic) {
		t.Errorf("mixed answers: %v", err)
	}
	if got := strings.Join(network.dialled, " "); got != "93.184.216.34:443 93.184.216.34:443" {
		t.Errorf("connected to %s", got)
	}
}

func TestNamesAreDialledThroughAProxy(t *testing.T) {
	p := newProxy(t, server(t, echo))
	address := strings.TrimPrefix(p.URL, "http://")
	for _, d := range []*outbound.NameDialer{
		{Host: newHost(t, outbound.Options{Getenv: environment("HTTPS_PROXY", "http://ann:secret@"+address)})},
		{Host: newHost(t, outbound.Options{Getenv: environment()}), Proxy: "http://ann:secret@" + address},
	} {
		conn, route, err := d.Dial(t.Context(), "only-the-proxy-knows.example", 443)
		if err != nil {
			t.Fatal(err)
		}
		if got := talk(t, conn); got != "hello world" || route.String() != "http://"+address {
			t.Errorf("%q by %v", got, route)
		}
	}
	if got := p.requests(); len(got) != 2 || got[0] != "CONNECT only-the-proxy-knows.example:443" || p.auth[0] == "" || p.auth[1] != p.auth[0] {
		t.Errorf("the proxy was asked %q with %q", got, p.auth)
	}
}

// Answers to CONNECT other than 200 end the connection, whatever they offer.
func TestProxiesThatRefuseOrLie(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n":                       "407",
		"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n":                "302",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n":                                 "101",
		"HTTP/1.1 204 No Content\r\n\r\n":                                          "204",
		"SSH-2.0-OpenSSH\r\n":                                                      "cannot be read",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", outbound.MaxResponseHeader): "cannot be read",
		strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 1000):                      "100",
		"": "cannot be read",
	} {
		at := server(t, func(conn net.Conn) { readHead(conn); fmt.Fprint(conn, answer) })
		d := &outbound.NameDialer{Host: newHost(t, outbound.Options{Getenv: environment()}), Proxy: "http://ann:geheim@" + at}
		_, _, err := d.Dial(t.Context(), "example.com", 443)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error()+errhint.Of(err), "geheim") {
			t.Errorf("%.40q: %v", answer, err)
		}
	}
}

func readHead(conn net.Conn) {
	for r := bufio.NewReader(conn); ; {
		if line, err := r.ReadString('\n'); err != nil || line == "\r\n" {
			return
		}
	}
}

// A SOCKS proxy is sent the name, not an address.
func TestNamesAreDialledThroughSOCKS(t *testing.T) {
	asked := make(chan string, 1)
	at := server(t, func(conn net.Conn) {
		head := make([]byte, 3)
		_, _ = io.ReadFull(conn, head)
		_, _ = conn.Write([]byte{5, 0})
		request := make([]byte, 5)
		_, _ = io.ReadFull(conn, request)
		rest := make([]byte, int(request[4])+2)
		_, _ = io.ReadFull(conn, rest)
		asked <- fmt.Sprintf("%d %s", request[3], rest[:len(rest)-2])
		_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		echo(conn)
	})
	d := &outbound.NameDialer{Host: newHost(t, outbound.Options{Getenv: environment()}), Proxy: "socks5://" + at}
	conn, _, err := d.Dial(t.Context(), "box.tail.ts.net", 22)
	if err != nil {
		t.Fatal(err)
	}
	if got := talk(t, conn); got != "hello world" {
		t.Errorf("got %q", got)
	}
	if got := <-asked; got != "3 box.tail.ts.net" {
		t.Errorf("the proxy was asked %q", got)
	}
}

// Metadata services are refused by every dialer, whatever networks are opened.
func TestMetadataIsNeverDialled(t *testing.T) {
	everything := outbound.Public(netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"))
	for _, text := range []string{
		"169.254.169.254", "169.254.170.2", "169.254.170.23", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23",
		"fd20:ce::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fd00:ec2::254%eth0",
	} {
		a := netip.MustParseAddr(text)
		if err := everything(a); !errors.Is(err, outbound.ErrMetadata) {
			t.Errorf("%s with every network open: %v", text, err)
		}
		address := net.JoinHostPort(text, "80")
		if _, err := new(outbound.Dialer).DialContext(t.Context(), "tcp", address); !errors.Is(err, outbound.ErrMetadata) {
			t.Errorf("%s by a dialer without a rule: %v", text, err)
		}
	}
	if err := everything(netip.MustParseAddr("10.0.0.1")); err != nil {
		t.Error(err)
	}
}

func TestFakeAddressesAreExplained(t *testing.T) {
	a := netip.MustParseAddr("198.18.3.4")
	if err := outbound.Public()(a); !errors.Is(err, outbound.ErrNotPublic) || !strings.Contains(errhint.Of(err), "Clash") {
		t.Errorf("%v, hint %q", err, errhint.Of(err))
	}
	if err := outbound.Public(netip.MustParsePrefix("198.18.0.0/15"))(a); err != nil {
		t.Errorf("a network that is named: %v", err)
	}
}
