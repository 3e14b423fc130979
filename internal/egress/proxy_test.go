package egress_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// tunnel asks the proxy for a connection and returns the status.
func tunnel(t *testing.T, conn net.Conn, target string) string {
	t.Helper()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target)
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatalf("CONNECT %s: %v", target, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return "200"
	}
	body, _ := io.ReadAll(answer.Body)
	return fmt.Sprintf("%d %s", answer.StatusCode, body)
}

func TestConnectAndSOCKS(t *testing.T) {
	w := open(t, allow(t, "api.example.com"))
	w.net.name("api.example.com", "93.184.216.34")
	w.net.serveTLS(t, "93.184.216.34:443", "api.example.com")
	conn := w.box.proxy(t)
	if got := tunnel(t, conn, "API.example.com.:443"); got != "200" {
		t.Fatal(got)
	}
	if got := greet(t, w, conn, "api.example.com"); got != "api.example.com says: hello" {
		t.Errorf("CONNECT: %q", got)
	}
	conn = w.box.proxy(t)
	if reply := socks(t, conn, "\x03\x0fapi.example.com", 443); reply != 0 {
		t.Fatalf("SOCKS: %d", reply)
	}
	if got := greet(t, w, conn, "api.example.com"); got != "api.example.com says: hello" {
		t.Errorf("SOCKS: %q", got)
	}
	if got := tunnel(t, w.box.proxy(t), "other.example.com:443"); !strings.HasPrefix(got, "403 egress: other.example.com:443 denied: no rule") {
		t.Errorf("a refused name: %s", got)
	}
	if reply := socks(t, w.box.proxy(t), "\x03\x05other", 443); reply != 2 {
		t.Errorf("a refused name: %d", reply)
	}
}

// socks asks for a connection by SOCKS5 and returns the reply.
func socks(t *testing.T, conn net.Conn, target string, port uint16) byte {
	t.Helper()
	_, _ = conn.Write(append([]byte("\x05\x01\x00\x05\x01\x00"+target), byte(port>>8), byte(port)))
	answer := make([]byte, 12)
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	return answer[3]
}

// A log that cannot be written stops everything.
func TestALogThatFails(t *testing.T) {
	w := open(t, allow(t, "api.example.com"))
	w.net.name("api.example.com", "93.184.216.34")
	w.net.serveTLS(t, "93.184.216.34:443", "api.example.com")
	conn := w.box.dial(t, "api.example.com", 443)
	w.log.failWith(errors.New("no space left"))
	if _, err := w.net.secure(conn, "api.example.com"); err == nil {
		t.Error("a connection without a record")
	}
	if q, c := w.net.queries(), w.net.connections(); q != "" || c != "" {
		t.Errorf("the host asked for %q and connected to %q", q, c)
	}
}
