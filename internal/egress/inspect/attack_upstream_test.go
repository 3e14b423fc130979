package inspect_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/egress/inspect"
)

// hostile has a TLS server that reads the head of a request and answers with bytes of
// its own.
func (w *world) hostile(answer func(conn net.Conn)) {
	w.t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{w.roots.sign(w.t, site, time.Now().Add(time.Hour))}, MinVersion: tls.VersionTLS12,
	})
	check(w.t, err)
	w.change(func() { w.server = l.Addr().String() })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := conn.Read(make([]byte, 64<<10)); err == nil {
				answer(conn)
			}
			_ = conn.Close()
		}
	}()
	w.t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
}

// TestAttack24_HostileHeads: answers that never begin are given up, after a bounded
// number of bytes.
func TestAttack24_HostileHeads(t *testing.T) {
	forever := func(first, again string) func(net.Conn) {
		return func(conn net.Conn) {
			_, err := io.WriteString(conn, first)
			for sent := 0; err == nil; sent += len(again) {
				if sent > 32<<20 {
					t.Error("32 MiB of a head were taken")
					return
				}
				_, err = io.WriteString(conn, again)
			}
		}
	}
	once := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = io.WriteString(conn, text)
			_, _ = io.Copy(io.Discard, conn) // until the other side ends it
		}
	}
	for name, answer := range map[string]func(net.Conn){
		"endless fields": forever("HTTP/1.1 200 OK\r\n", "X-A: "+strings.Repeat("a", 1000)+"\r\n"),
		"endless field":  forever("HTTP/1.1 200 OK\r\nX-A: ", strings.Repeat("a", 1000)),
		"1xx storm":      forever("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
		"no HTTP":        once("SSH-2.0-x\r\n"),
		"101 unasked":    once("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
		"status 999":     once("HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"),
		"both lengths":   once("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
		"nothing":        func(net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.hostile(answer)
			status, text, _ := w.do("GET", "/", "")
			if status != 502 || !strings.HasPrefix(text, "egress: "+site+" refused: ") {
				t.Errorf("%d %s", status, text)
			}
			if r := w.result(0); r == nil || r.Kind != inspect.Upstream {
				t.Errorf("%v", r)
			}
		})
	}
}

// TestAttack24_LyingLengths: what is shorter than it said does not look whole to the
// program.
func TestAttack24_LyingLengths(t *testing.T) {
	for name, answer := range map[string]string{
		"short length": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
		"short chunk":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc",
		"no last one":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
	} {
		w := newWorld(t, nil, github())
		w.hostile(func(conn net.Conn) { _, _ = io.WriteString(conn, answer) })
		answer, err := w.client().Get("https://" + site + "/")
		check(t, err)
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err == nil || string(body) != "abc" {
			t.Errorf("%s: %q %v", name, body, err)
		}
	}
}

// TestAttack24_Bomb has a compressed answer that would become 1 GiB: it is broken off,
// and takes little memory.
func TestAttack24_Bomb(t *testing.T) {
	var member bytes.Buffer
	z := gzip.NewWriter(&member)
	_, err := z.Write(make([]byte, 8<<20))
	check(t, err)
	check(t, z.Close())
	bomb := bytes.Repeat(member.Bytes(), inspect.MaxInflated>>23+1) // members of one stream
	w := newWorld(t, http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Encoding", "gzip")
		_, _ = out.Write(bomb)
	}), github())
	answer, err := w.client().Get("https://" + site + "/")
	check(t, err)
	defer answer.Body.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, answer.Body)
	runtime.ReadMemStats(&after)
	if err == nil || n > inspect.MaxInflated {
		t.Errorf("%d bytes, %v", n, err)
	}
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 64<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// TestAttack24_BrokenGzip ends the answer.
func TestAttack24_BrokenGzip(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(out, "this is not compressed, and says "+secret1)
	}), github())
	answer, err := w.client().Get("https://" + site + "/")
	check(t, err)
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err == nil || strings.Contains(string(body), secret1) {
		t.Errorf("%q %v", body, err)
	}
}
