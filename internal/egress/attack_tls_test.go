package egress_test

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress"
)

// serverNames is the extension server_name with some names.
func serverNames(names ...string) []byte {
	var list []byte
	for _, name := range names {
		list = append(list, 0)
		list = binary.BigEndian.AppendUint16(list, uint16(len(name)))
		list = append(list, name...)
	}
	body := append(binary.BigEndian.AppendUint16(nil, uint16(len(list))), list...)
	return extension(0, body)
}

func extension(kind uint16, body []byte) []byte {
	head := binary.BigEndian.AppendUint16(nil, kind)
	return append(binary.BigEndian.AppendUint16(head, uint16(len(body))), body...)
}

// message is a ClientHello with some extensions, without a record around it.
func message(extensions ...[]byte) []byte {
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0, 0, 2, 0x13, 0x01, 1, 0)
	var all []byte
	for _, e := range extensions {
		all = append(all, e...)
	}
	body = append(binary.BigEndian.AppendUint16(body, uint16(len(all))), all...)
	return append([]byte{1, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

// inRecords puts a message into records of a size.
func inRecords(message []byte, size int) (out []byte) {
	for len(message) > 0 {
		n := min(size, len(message))
		out = append(out, 22, 3, 1, byte(n>>8), byte(n))
		out = append(out, message[:n]...)
		message = message[n:]
	}
	return out
}

// passes sends bytes to port 443 of a name and reports whether the host connected
// to its server.
func passes(t *testing.T, w *world, name string, raw []byte) bool {
	t.Helper()
	before := w.net.connections()
	conn := w.box.dial(t, name, 443)
	_, _ = conn.Write(raw)
	if half, ok := conn.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
	_ = ended(conn)
	return w.net.connections() != before
}

// cdn is a server for several names at one address, of which one is allowed.
func cdn(t *testing.T) *world {
	w := open(t, allow(t, "good.example.com", "my_bucket.example.com"))
	for _, name := range []string{"good.example.com", "my_bucket.example.com", "evil.example.net"} {
		w.net.name(name, "93.184.216.34")
	}
	w.net.serveTLS(t, "93.184.216.34:443", "good.example.com", "my_bucket.example.com", "evil.example.net")
	return w
}

// The server name of TLS must be the name that was connected to.
func TestAttack05_ServerName(t *testing.T) {
	w := cdn(t)
	for what, extensions := range map[string][][]byte{
		"another name":       {serverNames("evil.example.net")},
		"none":               {},
		"an empty one":       {serverNames("")},
		"two names":          {serverNames("good.example.com", "evil.example.net")},
		"two names, swapped": {serverNames("evil.example.net", "good.example.com")},
		"two extensions":     {serverNames("good.example.com"), serverNames("evil.example.net")},
		"NUL":                {serverNames("evil.example.net\x00.good.example.com")},
		"NUL behind":         {serverNames("good.example.com\x00")},
		"a name below":       {serverNames("x.good.example.com")},
		"a dot behind":       {serverNames("good.example.com.")},
		"an address":         {serverNames("93.184.216.34")},
		"a space":            {serverNames("good.example.com ")},
		"not ASCII":          {serverNames("gооd.example.com")},
	} {
		if passes(t, w, "good.example.com", inRecords(message(extensions...), 16<<10)) {
			t.Errorf("%s: the host connected", what)
		}
	}
	if !passes(t, w, "good.example.com", inRecords(message(serverNames("GOOD.example.COM")), 16<<10)) {
		t.Error("upper case is the same name")
	}
	if !passes(t, w, "my_bucket.example.com", inRecords(message(serverNames("my_bucket.example.com")), 16<<10)) {
		t.Error("an underscore in a name")
	}
	if reply := socks(t, w.box.proxy(t), "\x03\x21evil.example.net\x00.good.example.com", 443); reply != 2 {
		t.Errorf("SOCKS with NUL: %d", reply)
	}
	conn := w.box.proxy(t)
	if got := tunnel(t, conn, "good.example.com:443"); got != "200" {
		t.Fatal(got)
	}
	if _, err := w.net.secure(conn, "evil.example.net"); err == nil {
		t.Error("another name in a tunnel")
	}
}

// In a spliced connection the Host of a request is not seen: a server for several
// names can be asked for another one. This is what splicing cannot prevent, and
// why the configuration warns of CDNs. Inspecting prevents it.
func TestAttack07_DomainFronting(t *testing.T) {
	for mode, want := range map[string]string{"splice": "GET evil.example.net/", "inspect": "421"} {
		w := open(t, allow(t, `{host: "good.example.com", mode: "`+mode+`"}`))
		w.net.name("good.example.com", "93.184.216.34")
		w.net.serveHTTP(t, "93.184.216.34:443", "good.example.com", "evil.example.net")
		client := tls.Client(w.box.dial(t, "good.example.com", 443), &tls.Config{ServerName: "good.example.com", InsecureSkipVerify: true})
		fmt.Fprint(client, "GET / HTTP/1.1\r\nHost: evil.example.net\r\nConnection: close\r\n\r\n")
		if got := ended(client); !strings.Contains(got, want) {
			t.Errorf("%s: %s", mode, got)
		}
	}
}

// echConfig is an ECH configuration with an outer name.
func echConfig(t *testing.T, outer string) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	body := append([]byte{7, 0, 0x20, 0, 32}, key.PublicKey().Bytes()...)
	body = append(body, 0, 4, 0, 1, 0, 1, 64, byte(len(outer)))
	body = append(append(body, outer...), 0, 0)
	config := extension(0xfe0d, body)
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(config))), config...)
}

// Of an encrypted ClientHello the outer name is judged. Names that stand for any
// other are refused unless a rule names them; an extension that is only there to
// look the same (GREASE) passes.
func TestAttack08_EncryptedClientHello(t *testing.T) {
	w := open(t, policy(t, func(e *config.Egress) { e.Mode = config.EgressPublic }))
	try := func(name, outer, inner string) bool {
		w.net.name(name, "93.184.216.34")
		before := w.net.connections()
		client := tls.Client(w.box.dial(t, name, 443), &tls.Config{ServerName: inner, RootCAs: w.net.roots, MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: echConfig(t, outer)})
		_ = client.Handshake()
		return w.net.connections() != before
	}
	w.net.serveTLS(t, "93.184.216.34:443", "good.example.com")
	if try("good.example.com", "front.example.net", "evil.example.net") {
		t.Error("the outer name is not the name that was connected to")
	}
	if try("good.example.com", "front.example.net", "good.example.com") {
		t.Error("the inner name was judged")
	}
	if try("cloudflare-ech.com", "cloudflare-ech.com", "evil.example.net") {
		t.Error("a name that stands for others")
	}
	if !try("good.example.com", "good.example.com", "good.example.com") {
		t.Error("the extension alone is no reason to refuse")
	}
}

// A ClientHello in any pieces is read; what is none is refused.
func TestAttack09_ClientHello(t *testing.T) {
	w := cdn(t)
	good := message(serverNames("good.example.com"), extension(21, make([]byte, 200)))
	for what, raw := range map[string][]byte{"many records": inRecords(good, 3), "64 KiB": inRecords(message(serverNames("good.example.com"), extension(21, make([]byte, 65400))), 16<<10)} {
		if !passes(t, w, "good.example.com", raw) {
			t.Errorf("%s: refused", what)
		}
	}
	for what, raw := range map[string][]byte{
		"never finished": inRecords(good, 3)[:100],
		"nothing":        {},
		"SSH":            []byte("SSH-2.0-OpenSSH_9.9\r\n"),
		"SSLv2":          {0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10},
		"an alert":       {21, 3, 1, 0, 2, 2, 40},
		"zeros":          make([]byte, 4096),
		"too long":       inRecords([]byte{1, 1, 0, 1, 3, 3}, 6),
	} {
		if passes(t, w, "good.example.com", raw) {
			t.Errorf("%s: the host connected", what)
		}
	}
	conn := w.box.dial(t, "good.example.com", 443)
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: good.example.com\r\n\r\n")
	if got := ended(conn); !strings.HasPrefix(got, "HTTP/1.1 403") || !strings.Contains(got, "does not begin with a TLS ClientHello") {
		t.Errorf("HTTP on port 443: %s", got)
	}
}

func TestAttack09_OneByteAtATime(t *testing.T) {
	w := cdn(t)
	conn := w.box.dial(t, "good.example.com", 443)
	_ = conn.(*net.TCPConn).SetNoDelay(true)
	for _, b := range inRecords(message(serverNames("good.example.com")), 16<<10) {
		if _, err := conn.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a connection", func() bool { return w.net.connections() != "" })
}

func TestAttack09_OldTLS(t *testing.T) {
	w := cdn(t)
	config := &tls.Config{ServerName: "good.example.com", RootCAs: w.net.roots, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}
	_ = tls.Client(w.box.dial(t, "good.example.com", 443), config).Handshake() // what the server says to it is the server's
	if w.net.connections() == "" {
		t.Error("the version is for the server to judge")
	}
}

// A program that sends nothing loses its connection.
func TestAttack09_Silence(t *testing.T) {
	w := open(t, allow(t, "good.example.com"), func(o *egress.Options) { o.SetHelloTimeout(50 * time.Millisecond) })
	for _, conn := range []net.Conn{w.box.dial(t, "good.example.com", 443), w.box.dial(t, "evil.example.net", 443), w.box.proxy(t)} {
		if got := ended(conn); got != "" {
			t.Errorf("answered %q", got)
		}
	}
	nothingLeft(t, w)
}
