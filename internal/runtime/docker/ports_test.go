package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

// TestCurlWithoutANetwork lets curl, in a sandbox that has no network, talk to a
// handler on the host: over the wire, and only while a grant is open.
func TestCurlWithoutANetwork(t *testing.T) {
	onEachTransport(t, func(t *testing.T, l *lab) {
		m := l.machineIn(t, workspaceDir(t))
		var granted atomic.Bool
		listener, err := m.Listen(t.Context(), 8080, &machine.PortOptions{Gate: func(context.Context, machine.Caller) error {
			if !granted.Load() {
				return errors.New("no grant is open")
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprintf(w, "%s %s %d", r.Method, r.URL.Path, n)
		})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		defer func() { _ = server.Close(); <-served }()

		if out, code := curl(t, m, "http://127.0.0.1:8080/"); code == 0 {
			t.Errorf("without a grant curl got %q", out)
		}
		granted.Store(true)
		for _, tt := range []struct{ args, want string }{
			{"http://127.0.0.1:8080/v1/models", "GET /v1/models 0"},
			{"http://localhost:8080/x", "GET /x 0"},
			{"--data-binary @/workspace/big http://127.0.0.1:8080/upload", "POST /upload 5000000"},
			{"http://127.0.0.1:8080/a http://127.0.0.1:8080/b", "GET /a 0GET /b 0"},
		} {
			inMachine(t, m, "head -c 5000000 /dev/zero > /workspace/big")
			if out, code := curl(t, m, tt.args); code != 0 || out != tt.want {
				t.Errorf("curl %s: exit %d, %q; want %q", tt.args, code, out, tt.want)
			}
		}
		granted.Store(false)
		if out, code := curl(t, m, "http://127.0.0.1:8080/"); code == 0 {
			t.Errorf("after the grant curl got %q", out)
		}
		if out, code := curl(t, m, "http://127.0.0.1:9/"); code != 7 {
			t.Errorf("a port that is not open: exit %d, %q", code, out)
		}
		if out, _ := inMachine(t, m, "ls /sys/class/net"); strings.TrimSpace(out) != "lo" {
			t.Errorf("interfaces: %q", out)
		}
	})
}

// TestDialIntoASandboxWithoutANetwork reaches a server inside.
func TestDialIntoASandboxWithoutANetwork(t *testing.T) {
	onEachTransport(t, func(t *testing.T, l *lab) {
		m := l.machineIn(t, workspaceDir(t))
		inMachine(t, m, "echo hello from inside > /workspace/index.html")
		if _, err := m.Start(t.Context(), &machine.Command{Argv: []string{"python3", "-m", "http.server", "--bind", "127.0.0.1", "3000"}, Dir: "/workspace"}); err != nil {
			t.Fatal(err)
		}
		var got []byte
		for range 100 {
			conn, err := m.Dial(t.Context(), "tcp", 3000)
			if errors.Is(err, machine.ErrRefused) {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
			if got, err = io.ReadAll(conn); err != nil {
				t.Fatal(err)
			}
			break
		}
		if !bytes.HasSuffix(got, []byte("\r\n\r\nhello from inside\n")) {
			t.Errorf("%q", got)
		}
	})
}

func curl(t *testing.T, m *machine.Machine, args string) (string, int) {
	t.Helper()
	return inMachine(t, m, "curl -s --max-time 20 "+args)
}

// inMachine runs a script and returns its output and exit code.
func inMachine(t *testing.T, m *machine.Machine, script string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	result, err := m.Exec(t.Context(), &machine.Command{Shell: script, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out.String(), result.ExitCode
}
