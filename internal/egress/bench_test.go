package egress_test

import (
	"io"
	"net"
	"testing"

	"github.com/atoll-run/atoll/internal/egress/splice"
)

const transfer = 64 << 20

// download reads transfer bytes from a connection.
func download(b *testing.B, conn net.Conn, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	if n, err := io.CopyN(io.Discard, conn, transfer); err != nil {
		b.Fatalf("%d bytes, %v", n, err)
	}
}

func send(conn net.Conn) {
	block := make([]byte, 256<<10)
	for range transfer / len(block) {
		if _, err := conn.Write(block); err != nil {
			return
		}
	}
}

// BenchmarkSplice moves 64 MiB through the server; BenchmarkRelay through two
// connections that are only copied to each other.
func BenchmarkSplice(b *testing.B) {
	w := open(b, allow(b, "raw.example.com:7"))
	w.net.name("raw.example.com", "93.184.216.34")
	w.net.serve(b, "93.184.216.34:7", send)
	a := w.box.lookup(b, "raw.example.com")
	b.SetBytes(transfer)
	for b.Loop() {
		conn, err := w.box.connect(a, 7)
		download(b, conn, err)
	}
}

func BenchmarkRelay(b *testing.B) {
	n := newInternet(b)
	n.serve(b, "server", send)
	n.serve(b, "relay", func(conn net.Conn) {
		if up, err := net.Dial("tcp", n.at["server"]); err == nil {
			_ = splice.Both(struct{ net.Conn }{conn}, struct{ net.Conn }{up})
		}
	})
	b.SetBytes(transfer)
	for b.Loop() {
		conn, err := net.Dial("tcp", n.at["relay"])
		download(b, conn, err)
	}
}
