package h1_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/model/proxy/h1"
)

func readAnswer(in, method string, n int) (h1.Response, string, error) {
	r := h1.NewReader(&script{in: in, n: n})
	var a h1.Response
	if err := r.ReadResponse(&a, method, patience); err != nil {
		return a, "", err
	}
	body := r.ResponseBody(a.Length)
	whole, err := body.ReadAll(nil, 1<<20, heap{})
	return a, string(whole), err
}

func TestAnswers(t *testing.T) {
	cases := []struct {
		name, in, method string
		status           int
		body             string
		close            bool
	}{
		{"length", lines("HTTP/1.1 200 OK", "Content-Length: 2", "") + "hi", "POST", 200, "hi", false},
		{"chunks, extension and trailer", lines("HTTP/1.1 200", "Transfer-Encoding: chunked", "", "2;a=b", "hi", "0", "X: y", ""), "POST", 200, "hi", false},
		{"until close", lines("HTTP/1.1 200 OK", "", "") + "hi", "POST", 200, "\r\nhi", true},
		{"HEAD", lines("HTTP/1.1 200 OK", "Content-Length: 20", ""), "HEAD", 200, "", false},
		{"interim", lines("HTTP/1.1 100 Continue", "", "HTTP/1.1 204 No", ""), "POST", 204, "", false},
		{"old", lines("HTTP/1.0 500 Oh no", "Content-Length: 1", "") + "x", "POST", 500, "x", true},
		{"close", lines("HTTP/1.1 429 Slow", "Connection: Close", "Content-Length: 0", ""), "POST", 429, "", true},
	}
	for _, c := range cases {
		for _, n := range []int{1, 5, 1000} {
			a, body, err := readAnswer(c.in, c.method, n)
			if err != nil || a.Status != c.status || body != c.body || a.Close != c.close {
				t.Errorf("%s in pieces of %d: %d %q close=%v %v", c.name, n, a.Status, body, a.Close, err)
			}
		}
	}
}

func TestAnswersThatAreRefused(t *testing.T) {
	for name, in := range map[string]string{
		"not HTTP":         "SSH-2.0-OpenSSH\r\n\r\n",
		"HTTP/2":           "HTTP/2 200 OK\r\n\r\n",
		"status":           "HTTP/1.1 9999 OK\r\n\r\n",
		"switch":           "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n",
		"both lengths":     "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"endless interim":  strings.Repeat("HTTP/1.1 103 Hint\r\n\r\n", 20),
		"header bomb":      "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 20000) + "\r\n",
		"endless trailers": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("A: b\r\n", 2000),
		"bare line feed":   "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
	} {
		_, _, err := readAnswer(in, "POST", 100)
		if _, ok := errors.AsType[*h1.ProtocolError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _, err := readAnswer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "POST", 100)
	if !errors.Is(err, h1.ErrTruncated) {
		t.Errorf("a lie about the length: %v", err)
	}
}

func TestChunksAreGatheredAndReadBack(t *testing.T) {
	var w h1.ChunkWriter
	w.Begin([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
	w.Append([]byte("one "))
	w.Append([]byte("two "))
	out := string(w.Take(false))
	w.Append([]byte("three"))
	out += string(w.Take(true))
	_, body, err := readAnswer(out, "POST", 3)
	if err != nil || body != "one two three" {
		t.Fatalf("%q %v", body, err)
	}
	w.Begin(nil)
	if got := string(w.Take(true)); got != h1.LastChunk {
		t.Fatalf("an empty body is %q", got)
	}
}
