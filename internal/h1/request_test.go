package h1_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/h1"
)

func TestRequestsAreReadInAnyPieces(t *testing.T) {
	in := lines("POST /v1/chat/completions?x=%20 HTTP/1.1", "Host: localhost:8080", "X-One:  two words \t", "Transfer-Encoding: chunked", "",
		"5", "hello", "1a", "abcdefghijklmnopqrstuvwxyz", "0", "") + "GET"
	for n := 1; n < len(in)+1; n++ {
		m, rest, err := readOne(in, n)
		if err != nil {
			t.Fatalf("pieces of %d: %v", n, err)
		}
		if m.body != "helloabcdefghijklmnopqrstuvwxyz" || len(rest) != 3 {
			t.Fatalf("pieces of %d: body %q, %d bytes left", n, m.body, len(rest))
		}
		if got := string(m.head.Get("x-one")); got != "two words" {
			t.Fatalf("X-One = %q", got)
		}
	}
}

func TestRequestsThatTwoParsersCouldReadDifferentlyAreRefused(t *testing.T) {
	const line, host = "POST /v1/x HTTP/1.1", "Host: a"
	cases := []struct {
		name, in string
		status   int
	}{
		{"both lengths", lines(line, host, "Content-Length: 5", "Transfer-Encoding: chunked", "", "0", ""), 400},
		{"both lengths, other order", lines(line, host, "Transfer-Encoding: chunked", "Content-Length: 5", "", "0", ""), 400},
		{"twin lengths", lines(line, host, "Content-Length: 2", "Content-Length: 2", "", "ab"), 400},
		{"list of lengths", lines(line, host, "Content-Length: 2, 2", "", "ab"), 400},
		{"signed length", lines(line, host, "Content-Length: +2", "", "ab"), 400},
		{"negative length", lines(line, host, "Content-Length: -2", "", "ab"), 400},
		{"hexadecimal length", lines(line, host, "Content-Length: 0x2", "", "ab"), 400},
		{"huge length", lines(line, host, "Content-Length: 9999999999999999999", "", "ab"), 400},
		{"empty length", lines(line, host, "Content-Length:", "", ""), 400},
		{"unknown coding", lines(line, host, "Transfer-Encoding: xchunked", "", ""), 501},
		{"coding list", lines(line, host, "Transfer-Encoding: gzip, chunked", "", ""), 501},
		{"twin codings", lines(line, host, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked", "", "0", ""), 400},
		{"folded line", lines(line, host, "X-A: b", " c", "", ""), 400},
		{"folded with a tab", lines(line, host, "X-A: b", "\tc:d", "", ""), 400},
		{"bare line feed", line + "\nHost: a\r\n\r\n", 400},
		{"bare line feed in a field", line + "\r\nHost: a\nX-Y: z\r\n\r\n", 400},
		{"bare carriage return", line + "\r\nHost: a\rX-Y: z\r\n\r\n", 400},
		{"NUL", line + "\r\nHost: a\r\nX-Y: \x00\r\n\r\n", 400},
		{"space before the colon", lines(line, host, "Content-Length : 2", "", "ab"), 400},
		{"no colon", lines(line, host, "nonsense", "", ""), 400},
		{"no name", lines(line, host, ": value", "", ""), 400},
		{"no host", lines(line, "X: y", "", ""), 400},
		{"two hosts", lines(line, host, host, "", ""), 400},
		{"odd host", lines(line, "Host: a/b", "", ""), 400},
		{"HTTP/1.0", lines("POST /v1/x HTTP/1.0", host, "", ""), 505},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
		{"no version", lines("GET /", host, "", ""), 400},
		{"two spaces", lines("GET  / HTTP/1.1", host, "", ""), 505},
		{"absolute form", lines("GET http://169.254.169.254/v1/x HTTP/1.1", host, "", ""), 400},
		{"asterisk", lines("OPTIONS * HTTP/1.1", host, "", ""), 400},
		{"authority", lines("CONNECT a:443 HTTP/1.1", host, "", ""), 400},
		{"broken escape", lines("GET /%zz HTTP/1.1", host, "", ""), 400},
		{"fragment", lines("GET /#a HTTP/1.1", host, "", ""), 400},
		{"upgrade", lines("GET / HTTP/1.1", host, "Connection: upgrade", "Upgrade: websocket", "", ""), 426},
		{"expectation", lines(line, host, "Expect: a miracle", "", ""), 417},
		{"trailers announced", lines(line, host, "Trailer: X-A", "Transfer-Encoding: chunked", "", "0", ""), 400},
		{"trailers", lines(line, host, "Transfer-Encoding: chunked", "", "0", "X-Litellm-End-User-Id: other", ""), 400},
		{"chunk extension", lines(line, host, "Transfer-Encoding: chunked", "", "1;a=b", "x", "0", ""), 400},
		{"chunk too long", lines(line, host, "Transfer-Encoding: chunked", "", "1", "xy", "0", ""), 400},
		{"chunk without length", lines(line, host, "Transfer-Encoding: chunked", "", "", "xy", "0", ""), 400},
		{"chunk length too long", lines(line, host, "Transfer-Encoding: chunked", "", "000000001", "x", "0", ""), 400},
		{"chunk with bare line feed", line + "\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n", 400},
		{"negative chunk", lines(line, host, "Transfer-Encoding: chunked", "", "-1", "x", "0", ""), 400},
		{"large head", lines(line, host, "X-A: "+strings.Repeat("a", h1.MaxHead), "", ""), 431},
		{"many fields", line + "\r\nHost: a\r\n" + strings.Repeat("A: b\r\n", h1.MaxFields) + "\r\n", 431},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range []int{1, 7, 1 << 20} {
				_, _, err := readOne(c.in, n)
				mustStatus(t, err, c.status)
			}
		})
	}
}

func TestAnEndInTheMiddleIsATruncation(t *testing.T) {
	in := lines("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "", "5", "hello", "0", "")
	for end := range in {
		_, _, err := readOne(in[:end], 3)
		want := h1.ErrTruncated
		if end == 0 {
			want = io.EOF
		}
		if !errors.Is(err, want) {
			t.Fatalf("cut at %d: %v", end, err)
		}
	}
}

func TestABodyIsBounded(t *testing.T) {
	for _, in := range []string{
		lines("POST / HTTP/1.1", "Host: a", "Content-Length: 2000000", "", ""),
		lines("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "", "f0000", strings.Repeat("x", 0xf0000), "f0000", strings.Repeat("x", 0xf0000), "0", ""),
	} {
		if _, _, err := readOne(in, 4096); !errors.Is(err, h1.ErrTooLarge) {
			t.Errorf("%v", err)
		}
	}
}

// counting counts the room that was asked for.
type counting struct{ most int }

func (c *counting) Grow(buf []byte, n int) ([]byte, error) {
	c.most = max(c.most, len(buf)+n)
	return heap{}.Grow(buf, n)
}

func TestALengthIsNotBelievedBeforeItsBytes(t *testing.T) {
	r := h1.NewReader(&script{in: lines("POST / HTTP/1.1", "Host: a", "Content-Length: 33554432", "", "x"), n: 1 << 20})
	var q h1.Request
	if err := r.ReadRequest(&q, patience); err != nil {
		t.Fatal(err)
	}
	room := &counting{}
	body := r.RequestBody(q.Length)
	if _, err := body.ReadAll(nil, 32<<20, room); !errors.Is(err, h1.ErrTruncated) {
		t.Fatal(err)
	}
	if room.most > 1<<20 {
		t.Errorf("%d bytes were taken for 3 bytes of body", room.most)
	}
}

func TestLargeHeadsAndPipelinedRequests(t *testing.T) {
	var in strings.Builder
	for i := range 20 {
		fmt.Fprintf(&in, "POST /%d HTTP/1.1\r\nHost: a\r\nX-Fill: %s\r\nContent-Length: 4\r\n\r\n%04d", i, strings.Repeat("f", i*3000), i)
	}
	for _, n := range []int{1, 100, 1 << 20} {
		r := h1.NewReader(&script{in: in.String(), n: n})
		for i := range 20 {
			var q h1.Request
			if err := r.ReadRequest(&q, patience); err != nil {
				t.Fatal(i, err)
			}
			body := r.RequestBody(q.Length)
			whole, err := body.ReadAll(nil, 100, heap{})
			if err != nil || string(whole) != fmt.Sprintf("%04d", i) || string(q.Target) != fmt.Sprint("/", i) || len(q.Get("x-fill")) != i*3000 {
				t.Fatal(i, err, string(whole), string(q.Target))
			}
		}
		r.Release()
	}
}

func TestReadingAHeadAllocatesNothing(t *testing.T) {
	in := lines("POST /v1/chat/completions HTTP/1.1", "Host: localhost:8080", "Content-Type: application/json", "Authorization: Bearer x", "Content-Length: 2", "") + "{}"
	conn := &script{n: 1 << 20}
	r := h1.NewReader(conn)
	var q h1.Request
	store := make([]byte, 0, 100)
	allocs := testing.AllocsPerRun(100, func() {
		conn.in = in
		if err := r.ReadRequest(&q, patience); err != nil {
			t.Fatal(err)
		}
		body := r.RequestBody(q.Length)
		if _, err := body.ReadAll(store, 100, heap{}); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Errorf("%.0f allocations a request", allocs)
	}
}
