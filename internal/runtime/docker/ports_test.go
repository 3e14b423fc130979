package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
)

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

// TestCurlWithoutANetwork lets curl, in a sandbox that has no network, talk to a
// handler on the host: over the wire, and only under an open grant.
func TestCurlWithoutANetwork(t *testing.T) {
	onEachTransport(t, func(t *testing.T, l *lab) {
		m := l.machineIn(t, workspaceDir(t))
		grants := newGrants(t, "s", m)
		serveGranted(t, m, grants, false, func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprintf(w, "%s %s %d", r.Method, r.URL.Path, n)
		})
		if out, code := curl(t, m, nil, "http://127.0.0.1:8080/"); code == 0 {
			t.Errorf("without a grant curl got %q", out)
		}
		g := openGrant(t, grants, "run")
		inMachine(t, m, "head -c 5000000 /dev/zero > /workspace/big")
		for _, tt := range []struct{ args, want string }{
			{"http://127.0.0.1:8080/v1/models", "GET /v1/models 0"},
			{"http://localhost:8080/x", "GET /x 0"},
			{"--data-binary @/workspace/big http://127.0.0.1:8080/upload", "POST /upload 5000000"},
			{"http://127.0.0.1:8080/a http://127.0.0.1:8080/b", "GET /a 0GET /b 0"},
		} {
			if out, code := curl(t, m, g, tt.args); code != 0 || out != tt.want {
				t.Errorf("curl %s: exit %d, %q; want %q", tt.args, code, out, tt.want)
			}
		}
		if out, code := curl(t, m, nil, "http://127.0.0.1:8080/"); code == 0 {
			t.Errorf("beside the grant curl got %q", out)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if out, code := curl(t, m, nil, "http://127.0.0.1:8080/"); code == 0 {
			t.Errorf("after the grant curl got %q", out)
		}
		if out, code := curl(t, m, nil, "http://127.0.0.1:9/"); code != 7 {
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

func curl(t *testing.T, m *machine.Machine, g *grant.Grant, args string) (string, int) {
	t.Helper()
	return inMachineUnder(t, m, g, "curl -s --max-time 20 "+args)
}

// inMachine runs a script and returns its output and exit code.
func inMachine(t *testing.T, m *machine.Machine, script string) (string, int) {
	t.Helper()
	return inMachineUnder(t, m, nil, script)
}

// inMachineUnder runs a script under a grant, or under none.
func inMachineUnder(t *testing.T, m *machine.Machine, g *grant.Grant, script string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	command := &machine.Command{Shell: script, Stdout: &out, Stderr: &out}
	if g != nil {
		command.Grant = g.ID()
	}
	result, err := m.Exec(t.Context(), command)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out.String(), result.ExitCode
}

// newGrants returns the grants of a sandbox.
func newGrants(t *testing.T, name string, m *machine.Machine) *grant.Grants {
	t.Helper()
	locks, err := filelock.Open(filepath.Join(t.TempDir(), "leases"))
	if err != nil {
		t.Fatal(err)
	}
	return grant.NewGrants(name, m, locks)
}

func openGrant(t *testing.T, grants *grant.Grants, run string) *grant.Grant {
	t.Helper()
	g, err := grants.Open(t.Context(), &grant.Terms{Run: run, Until: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// serveGranted serves port 8080 of a sandbox to callers with a grant, or to
// strangers, too.
func serveGranted(t *testing.T, m *machine.Machine, grants *grant.Grants, strangers bool, handle http.HandlerFunc) {
	t.Helper()
	inner, err := m.Listen(t.Context(), 8080, &machine.PortOptions{WithGrant: true, Gate: func(_ context.Context, caller machine.Caller) error {
		if strangers {
			return nil
		}
		_, err := grants.Find(caller.Grant)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handle, ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, grantKey{}, grant.Of(conn))
	}}
	served := make(chan error, 1)
	go func() { served <- server.Serve(grants.Listener(inner, strangers)) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
}

// grantKey is where a request's context has the grant.
type grantKey struct{}
