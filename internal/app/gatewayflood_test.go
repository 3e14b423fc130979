package app_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/run/execute"
)

// A client that vanishes, reads nothing or asks for too much at once is bounded. What it
// had begun ends, and its sandbox lives until its deadline.
func TestGatewayHostileClients(t *testing.T) {
	t.Parallel()
	b := openBureau(linuxSite(t), execute.Options{})
	const streams = 4
	as := access.Caller{Token: "a", Scope: access.Run, Account: "acme"}
	base := restServer(b, as, func(o *rest.Options) { o.Limit.Streams, o.Limit.Send = streams, 300*time.Millisecond })
	c, err := client.New(client.Options{URL: base})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	box, err := c.CreateSandbox(t.Context(), &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	running := func(word string) int {
		t.Helper()
		result, err := restClient(b, access.Caller{Token: "looks", Scope: access.Run, Account: "acme"}).Exec(t.Context(), box.ID, shell("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -cx "+word))
		if err != nil {
			t.Fatal(err)
		}
		return len(strings.TrimSuffix(strings.TrimSpace(result.Stdout), "0"))
	}
	t.Run("vanishes while it uploads", func(t *testing.T) {
		conn := begin(t, base, fmt.Sprintf("PUT /api/v1/sandboxes/%s/files?path=half HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n%s", box.ID, strings.Repeat("x", 100_000)))
		conn.Close()
		eventually(t, "a file is half there", func() bool {
			list, err := c.ListFiles(t.Context(), box.ID, api.ListFilesQuery{Path: "."})
			return err == nil && len(list.Files) == 0
		})
	})
	t.Run("reads nothing", func(t *testing.T) {
		conn := begin(t, base, execOf(box.ID, "yes slow"))
		defer conn.Close()
		if answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", answer, err)
		}
		eventually(t, "the command goes on although nobody reads", func() bool { return running("slow") == 0 })
	})
	t.Run("asks for too much at once", func(t *testing.T) {
		var open []net.Conn
		eventually(t, "it may have more", func() bool {
			open = append(open, begin(t, base, execOf(box.ID, "sleep 321")))
			_, err := c.Exec(t.Context(), box.ID, shell("true"))
			return isProblem(err, "too_many_requests") && len(open) >= streams
		})
		for _, conn := range open {
			conn.Close() // it vanishes
		}
		eventually(t, "what it left counts", func() bool { _, err := c.Exec(t.Context(), box.ID, shell("true")); return err == nil })
		eventually(t, "what it left goes on", func() bool { return running("321") == 0 })
	})
	if seen, err := c.Sandbox(t.Context(), box.ID); err != nil || !seen.Running {
		t.Errorf("%+v, %v", seen, err)
	}
}

// execOf is the request for a stream of a command line.
func execOf(id, line string) string {
	body := fmt.Sprintf(`{"command":%q}`, line)
	return fmt.Sprintf("POST /api/v1/sandboxes/%s/exec HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", id, len(body), body)
}

// begin opens a connection and sends the beginning of a request.
func begin(t *testing.T, base, request string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn
}
