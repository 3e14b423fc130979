//go:build !race

package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"testing"
)

// The most that one request may allocate, with everything that is kept of it:
// about 87, most of them net/http's. The race detector allocates too.
const (
	maxAllocsWhole  = 100
	maxAllocsStream = 100
)

// TestARequestAllocatesLittle sends requests through the whole of the proxy, with
// a caller and an upstream that allocate nothing.
func TestARequestAllocatesLittle(t *testing.T) {
	whole := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 72\r\n\r\n" +
		`{"model":"good-1","usage":{"prompt_tokens":11,"completion_tokens":7}}   `
	event := "data: {\"model\":\"good-1\",\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n"
	stream := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	for range 50 {
		stream += fmt.Sprintf("%x\r\n%s\r\n", len(event), event)
	}
	stream += "0\r\n\r\n"
	for _, test := range []struct {
		name, body, answer, end string
		most                    float64
	}{
		{"whole", hello, whole, "}   ", maxAllocsWhole},
		{"stream of 50 events", helloStream, stream, "0\r\n\r\n", maxAllocsStream},
	} {
		p := newProxy(t, "http://"+bareModel(t, test.answer), nil).listen(terms())
		conn := p.dial()
		question, buffer := []byte(request("POST", chatPath, test.body)), make([]byte, 64<<10)
		n := math.Inf(1) // the least of several turns: the books are moved to the database now and then
		for range 10 {
			n = min(n, testing.AllocsPerRun(20, func() {
				if _, err := conn.Write(question); err != nil {
					t.Fatal(err)
				}
				readUntil(t, conn, buffer, []byte(test.end))
			}))
		}
		if n > test.most {
			t.Errorf("%s: %.0f allocations, more than %.0f", test.name, n, test.most)
		}
	}
}

// bareModel answers every request the same.
func bareModel(t *testing.T, answer string) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffer, text := make([]byte, 64<<10), []byte(answer)
				for {
					if n, err := conn.Read(buffer); err != nil || !bytes.HasSuffix(buffer[:n], []byte("}")) {
						return
					}
					if _, err := conn.Write(text); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// readUntil reads until what has come ends so.
func readUntil(t *testing.T, r io.Reader, buffer, end []byte) {
	t.Helper()
	for have := 0; !bytes.HasSuffix(buffer[:have], end); {
		n, err := r.Read(buffer[have:])
		if err != nil {
			t.Fatal(err)
		}
		have += n
	}
}
