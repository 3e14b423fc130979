package inspect_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/h1"
)

// TestAttack10_Smuggling sends what two readers could understand differently. Nothing
// of it reaches the server.
func TestAttack10_Smuggling(t *testing.T) {
	var reached atomic.Int32
	w := newWorld(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	const line = "POST /x HTTP/1.1"
	host, n := "Host: "+site, 0
	for name, request := range map[string]string{
		"both lengths":      lines(line, host, "Content-Length: 5", "Transfer-Encoding: chunked", "", "0", ""),
		"the other order":   lines(line, host, "Transfer-Encoding: chunked", "Content-Length: 5", "", "0", ""),
		"twin lengths":      lines(line, host, "Content-Length: 2", "Content-Length: 2", "", "ab"),
		"list of codings":   lines(line, host, "Transfer-Encoding: gzip, chunked", "", "0", ""),
		"twin codings":      lines(line, host, "Transfer-Encoding: chunked", "Transfer-Encoding: identity", "", "0", ""),
		"folded line":       lines(line, host, "X-A: b", " c", "", ""),
		"bare line feed":    line + "\n" + host + "\n\n\r\n\r\n",
		"announced trailer": lines(line, host, "Trailer: Authorization", "Transfer-Encoding: chunked", "", "0", ""),
		"underscores":       lines(line, host, "Content_Length: 2", "Content-Length: 0", "", ""),
		"1 MB header":       lines(line, host, "X-A: "+strings.Repeat("a", 1<<20), "", ""),
		"many fields":       line + "\r\n" + host + "\r\n" + strings.Repeat("A: b\r\n", h1.MaxFields) + "\r\n",
	} {
		out := w.raw(request)
		if !strings.HasPrefix(out, "HTTP/1.1 4") && !strings.HasPrefix(out, "HTTP/1.1 501") && name != "1 MB header" {
			t.Errorf("%s: answered %q", name, out)
		}
		if r := w.result(n); r == nil || r.Kind != inspect.Protocol {
			t.Errorf("%s: %v", name, r)
		}
		n++
	}
	if got := reached.Load(); got > 0 {
		t.Errorf("%d requests reached the server: %q", got, w.recorded)
	}
}

// TestAttack10_ChunksAreWrittenAnew: the server gets the chunks of the host. What is
// wrong in the middle of a body breaks the request off, so that no server takes it for
// whole.
func TestAttack10_ChunksAreWrittenAnew(t *testing.T) {
	var whole atomic.Int32
	w := newWorld(t, http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err == nil {
			whole.Add(1)
			fmt.Fprintf(out, "%s %v", body, q.TransferEncoding)
		}
	}))
	out := w.raw(lines("POST /a HTTP/1.1", "Host: "+site, "Transfer-Encoding: chunked", "Connection: close", "", "3", "abc", "2", "de", "0", ""))
	if !strings.Contains(out, "abcde [chunked]") {
		t.Error(out)
	}
	for i, chunks := range []string{lines("3", "abc", "0", "Authorization: Bearer x", ""), lines("3;a=b", "abc", "0", ""), lines("3", "abcd", "0", "")} {
		out = w.raw(lines("POST /b HTTP/1.1", "Host: "+site, "Transfer-Encoding: chunked", "") + chunks)
		if r := w.result(i + 1); r == nil || r.Kind != inspect.Protocol || !strings.HasPrefix(out, "HTTP/1.1 400") {
			t.Errorf("%v %s", r, out)
		}
	}
	if got := whole.Load(); got != 1 {
		t.Errorf("%d requests were whole", got)
	}
}

// TestAttack10_Pipelining sends requests at once: each is judged, and answered in turn.
func TestAttack10_Pipelining(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(echo))
	var all strings.Builder
	for i := range 20 {
		fmt.Fprintf(&all, "POST /%d HTTP/1.1\r\nHost: %s\r\nContent-Length: 2\r\n\r\n%02d", i, site, i)
	}
	out := w.raw(all.String() + lines("GET /end HTTP/1.1", "Host: "+site, "Connection: close", ""))
	at := 0
	for i := range 20 {
		next := strings.Index(out[at:], fmt.Sprintf("POST /%d %s\n", i, site))
		if next < 0 {
			t.Fatalf("no answer to %d in order", i)
		}
		at += next
	}
	if len(w.recorded) != 21 {
		t.Errorf("%d recorded", len(w.recorded))
	}
}
