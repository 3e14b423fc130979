package proxyport_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/egress/proxyport"
)

// client is a connection whose program has sent everything already.
type client struct {
	net.Conn
	in  io.Reader
	out bytes.Buffer
}

func (c *client) Read(b []byte) (int, error)  { return c.in.Read(b) }
func (c *client) Write(b []byte) (int, error) { return c.out.Write(b) }

func sent(text string) *client { return &client{in: strings.NewReader(text)} }

const socksHello = "\x05\x01\x00"

func socks(name string, port uint16) string {
	return socksHello + "\x05\x01\x00\x03" + string(rune(len(name))) + name + string([]byte{byte(port >> 8), byte(port)})
}

func TestRequests(t *testing.T) {
	for text, want := range map[string]proxyport.Request{
		"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n":           {Host: "example.com", Port: 443},
		"CONNECT example.com:22 HTTP/1.0\r\n\r\n":                                     {Host: "example.com", Port: 22},
		"CONNECT [::1]:443 HTTP/1.1\r\n\r\n":                                          {Host: "[::1]", Port: 443},
		"CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n":                                         {Host: "0x7f.1", Port: 443},
		"GET http://example.com/a?b HTTP/1.1\r\nHost: example.com\r\n\r\n":            {Host: "example.com", Port: 80, Plain: true},
		"GET HTTP://Example.com:8080 HTTP/1.1\r\nHost: other\r\n\r\n":                 {Host: "Example.com", Port: 8080, Plain: true},
		"GET http://user@example.com/ HTTP/1.1\r\n\r\n":                               {Host: "user@example.com", Port: 80, Plain: true},
		socks("example.com", 443):                                                     {Host: "example.com", Port: 443},
		socks("evil.com\x00.example.com", 443):                                        {Host: "evil.com\x00.example.com", Port: 443},
		socksHello + "\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb":                       {Host: "127.0.0.1", Port: 443},
		socksHello + "\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x50": {Host: "::1", Port: 80},
	} {
		got, err := proxyport.Read(sent(text))
		if err != nil || got.Host != want.Host || got.Port != want.Port || got.Plain != want.Plain {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// What a program sends behind its request is not lost.
func TestAccept(t *testing.T) {
	for text, want := range map[string][2]string{
		"CONNECT example.com:443 HTTP/1.1\r\n\r\nTLS": {"HTTP/1.1 200 Connection established\r\n\r\n", "TLS"},
		socks("example.com", 443) + "TLS":             {"\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00", "TLS"},
		"POST http://example.com?q HTTP/1.1\r\nHost: example.com\r\nProxy-Authorization: Basic eA==\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\nbody": {
			"", "POST /?q HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody",
		},
	} {
		c := sent(text)
		r, err := proxyport.Read(c)
		if err != nil {
			t.Fatal(err)
		}
		first, err := r.Accept()
		if err != nil || c.out.String() != want[0] || string(first) != want[1] {
			t.Errorf("%q: answered %q, first %q, %v", text, c.out.String(), first, err)
		}
	}
}

func TestRefuse(t *testing.T) {
	for text, want := range map[string]string{
		"CONNECT example.com:443 HTTP/1.1\r\n\r\n": "HTTP/1.1 403 Refused\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: 8\r\n\r\nno rule\n",
		socks("example.com", 443):                  "\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00",
	} {
		c := sent(text)
		r, err := proxyport.Read(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Refuse("no rule"); err != nil || c.out.String() != want {
			t.Errorf("%q: %q, %v", text, c.out.String(), err)
		}
	}
}

// What is not accepted is answered, once, and nothing comes of it.
func TestWhatIsNotAccepted(t *testing.T) {
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n":                                     "HTTP/1.1 400",
		"GET https://example.com/ HTTP/1.1\r\n\r\n":                                       "HTTP/1.1 400",
		"GET ftp://example.com/ HTTP/1.1\r\n\r\n":                                         "HTTP/1.1 400",
		"CONNECT example.com HTTP/1.1\r\n\r\n":                                            "HTTP/1.1 400",
		"CONNECT example.com:0443 HTTP/1.1\r\n\r\n":                                       "HTTP/1.1 400",
		"CONNECT example.com:+443 HTTP/1.1\r\n\r\n":                                       "HTTP/1.1 400",
		"CONNECT example.com:0 HTTP/1.1\r\n\r\n":                                          "HTTP/1.1 400",
		"CONNECT example.com:65536 HTTP/1.1\r\n\r\n":                                      "HTTP/1.1 400",
		"CONNECT ::1:443 HTTP/1.1\r\n\r\n":                                                "HTTP/1.1 400",
		"CONNECT a b:443 HTTP/1.1\r\n\r\n":                                                "HTTP/1.1 400",
		"CONNECT example.com:443 HTTP/2.0\r\n\r\n":                                        "HTTP/1.1 400",
		"CONNECT example.com:443 HTTP/1.1\r\nX: \x00\r\n\r\n":                             "HTTP/1.1 400",
		"CONNECT example.com:443 HTTP/1.1\nHost: x\n\r\n\r\n":                             "HTTP/1.1 400",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                                "HTTP/1.1 400",
		"CONNECT a:443 HTTP/1.1\r\nX: " + strings.Repeat("x", proxyport.MaxHead) + "\r\n": "HTTP/1.1 431",
		"\x05\x01\x02": "\x05\xff",
		"\x05\x00":     "\x05\xff",
		socksHello + "\x05\x02\x00\x03\x01a\x01\xbb":               "\x05\x00\x05\x07",
		socksHello + "\x05\x03\x00\x01\x7f\x00\x00\x01\x01\xbb":    "\x05\x00\x05\x07",
		socksHello + "\x05\x01\x00\x02aaaaaaa":                     "\x05\x00\x05\x08",
		socksHello + "\x04\x01\x00\x01\x7f\x00\x00\x01\x01\xbb":    "\x05\x00\x05\x01",
		"\x04\x01\x01\xbb\x7f\x00\x00\x01\x00\r\n\r\n":             "HTTP/1.1 400",
		"\x16\x03\x01\x00\x05hello\r\n\r\n":                        "HTTP/1.1 400",
		socksHello + "\x05\x01\x01\x03\x0bexample.com\x01\xbb TLS": "\x05\x00\x05\x01",
	} {
		c := sent(text)
		_, err := proxyport.Read(c)
		if _, ok := errors.AsType[*proxyport.Refusal](err); !ok || !strings.HasPrefix(c.out.String(), want) || strings.Count(c.out.String(), "HTTP/1.1 ") > 1 {
			t.Errorf("%.60q: %q, %v", text, c.out.String(), err)
		}
	}
	for _, text := range []string{"", "\x05", "\x05\x03\x00", socksHello, socksHello + "\x05\x01\x00\x03\xffabc", "CONNECT example.com:443 HTTP/1.1\r\n"} {
		c := sent(text)
		if r, err := proxyport.Read(c); err == nil {
			t.Errorf("%q was read as %+v", text, r)
		}
	}
}

// A head that comes byte by byte is read as one.
func TestSlowly(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	_ = ours.SetDeadline(time.Now().Add(20 * time.Second))
	go func() {
		for _, b := range []byte("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n") {
			_, _ = theirs.Write([]byte{b})
		}
	}()
	if r, err := proxyport.Read(ours); err != nil || r.Host != "example.com" {
		t.Errorf("%+v, %v", r, err)
	}
}

// FuzzRead holds that a request has a port, that a head made for a server has one
// empty line, at its end, and that a refusal was answered.
func FuzzRead(f *testing.F) {
	f.Add([]byte("CONNECT example.com:443 HTTP/1.1\r\n\r\n"))
	f.Add([]byte("GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\nbody"))
	f.Add([]byte(socks("example.com", 443)))
	f.Add([]byte(socksHello + "\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := sent(string(raw))
		r, err := proxyport.Read(c)
		if _, ok := errors.AsType[*proxyport.Refusal](err); ok && c.out.Len() == 0 {
			t.Fatal("refused without an answer")
		}
		if err != nil {
			return
		}
		if r.Port < 0 || r.Port > 65535 {
			t.Fatalf("port %d", r.Port)
		}
		first, err := r.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if head, _, _ := bytes.Cut(first, []byte("\r\n\r\n")); r.Plain && !bytes.HasSuffix(head, []byte("\r\nConnection: close")) {
			t.Fatalf("head %q", head)
		}
	})
}
