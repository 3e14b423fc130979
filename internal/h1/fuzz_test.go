package h1_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzRequest holds the reader against net/http: whatever is accepted here must
// be read the same there, to the byte where the next request begins.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		lines("POST /v1/chat/completions HTTP/1.1", "Host: localhost:8080", "Content-Length: 2", "", "{}"),
		lines("POST /v1/x?a=b HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "", "2", "{}", "0", "", "GET / HTTP/1.1"),
		lines("GET /v1/models HTTP/1.1", "Host: [::1]:80", "Connection: close, x", "", ""),
		lines("POST / HTTP/1.1", "Host: a", "Content-Length: 1", "Content-Length: 1", "", "x"),
		lines("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Content-Length: 1", "", "0", ""),
		lines("POST / HTTP/1.1", "Host: a", "X: y", " z", "", ""),
		"GET / HTTP/1.1\nHost: a\n\n",
	} {
		f.Add(seed, byte(3))
	}
	f.Fuzz(func(t *testing.T, in string, pieces byte) {
		m, rest, err := readOne(in, int(pieces)+1)
		if err != nil {
			return
		}
		buffered := bufio.NewReader(strings.NewReader(in))
		q, err := http.ReadRequest(buffered)
		if err != nil {
			t.Fatalf("net/http refuses %q: %v", in, err)
		}
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Fatalf("net/http refuses the body of %q: %v", in, err)
		}
		left, _ := io.ReadAll(buffered)
		if q.Method != string(m.head.Method) || q.RequestURI != string(m.head.Target) || q.Host != string(m.head.Host) ||
			string(body) != m.body || len(left) != len(rest) || q.Close != m.head.Close {
			t.Fatalf("%q: %s %s %s %q and %d left; net/http %s %s %s %q and %d", in,
				m.head.Method, m.head.Target, m.head.Host, m.body, len(rest), q.Method, q.RequestURI, q.Host, body, len(left))
		}
		compareFields(t, q, &m)
	})
}

func compareFields(t *testing.T, q *http.Request, m *message) {
	t.Helper()
	seen := map[string][]string{}
	for _, field := range m.head.Fields {
		name := http.CanonicalHeaderKey(string(field.Name))
		if name != "Host" && name != "Transfer-Encoding" {
			seen[name] = append(seen[name], string(field.Value))
		}
	}
	for name, values := range seen {
		got := q.Header[name]
		if strings.Join(got, "\n") != strings.Join(values, "\n") && name != "Connection" && name != "Content-Length" {
			t.Fatalf("%s is %q, net/http says %q", name, values, got)
		}
	}
}
