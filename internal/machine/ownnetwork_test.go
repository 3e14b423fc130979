package machine_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/guestbuild"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/wire"
)

// TestOwnNetwork: a guest without any capability, in a network that is not the sandbox's,
// gives what it starts one of their own, and the ports of the host are there.
func TestOwnNetwork(t *testing.T) {
	g := machinetest.Start(t, &machinetest.Options{Args: []string{"--own-network"}})
	m := g.Machine(t, nil)
	if got := sh(t, m, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"); strings.TrimSpace(got.out) != "lo" {
		t.Errorf("interfaces %q", got.out)
	}
	status := sh(t, m, "grep -E 'Cap|NoNew|Seccomp:' /proc/self/status | tr -s '\\t' ' '; id -u").out
	for _, want := range []string{"CapEff: 0000000000000000", "CapPrm: 0000000000000000", "CapBnd: 0000000000000000", "CapInh: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2", "65534\n"} {
		if !strings.Contains(status, want) {
			t.Errorf("%q is missing in\n%s", want, status)
		}
	}
	for _, attempt := range []string{"unshare -U true", "unshare -n true", "nsenter -n -t 1 true", "nsenter -U -t 1 true"} {
		if got := sh(t, m, attempt); got.ExitCode == 0 {
			t.Errorf("%s succeeded", attempt)
		}
	}
	const port = 80 // one that needs a capability where the guest is
	l, err := m.Listen(patience(t), port, openPort(open))
	check(t, err)
	defer l.Close()
	go serveOnce(l)
	if got := python(t, m, fmt.Sprintf("import socket\ns=socket.create_connection((\"127.0.0.1\", %d))\nprint(s.recv(10).decode())", port)); got != "hello\n" {
		t.Errorf("the host's port says %q", got)
	}
	if _, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		t.Error("the port is open where the guest is")
	}
}

// TestOwnNetworkIsServedAgain: processes inside can end the one that makes sockets for the
// guest, and stop it; ports are opened nevertheless, in its network.
func TestOwnNetworkIsServedAgain(t *testing.T) {
	g := machinetest.Start(t, &machinetest.Options{Args: []string{"--own-network"}})
	m := g.Machine(t, nil)
	for n, signal := range []string{"KILL", "KILL", "STOP"} {
		sh(t, m, "kill -"+signal+" -1 2>/dev/null; true")
		port := 80 + n // that needs a capability
		l, err := m.Listen(patience(t), port, openPort(open))
		if err != nil {
			t.Fatalf("after %s: %v", signal, err)
		}
		go serveOnce(l)
		if got := python(t, m, fmt.Sprintf("import socket\ns=socket.create_connection((\"127.0.0.1\", %d))\nprint(s.recv(10).decode())", port)); got != "hello\n" {
			t.Errorf("after %s the host's port says %q", signal, got)
		}
		if got := sh(t, m, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"); strings.TrimSpace(got.out) != "lo" {
			t.Errorf("after %s: interfaces %q", signal, got.out)
		}
		_ = l.Close()
	}
}

// serveOnce says hello to one connection.
func serveOnce(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, "hello")
	_ = conn.Close()
}

// TestOwnNetworkServesItself: a server inside is reached by the host, and by nobody else.
func TestOwnNetworkServesItself(t *testing.T) {
	g := machinetest.Start(t, &machinetest.Options{Args: []string{"--own-network"}})
	m := g.Machine(t, nil)
	port := freePort(t)
	sh(t, m, fmt.Sprintf("cd /tmp && (python3 -m http.server --bind 127.0.0.1 %d >/dev/null 2>&1 </dev/null &)", port))
	eventually(t, "it listens", func() bool {
		conn, err := m.Dial(patience(t), "tcp", port)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		_ = conn.Close()
		t.Error("the server is in the guest's network")
	}
}

// TestBridgeOfMany: one pair of streams carries all wires of a machine.
func TestBridgeOfMany(t *testing.T) {
	g := machinetest.Start(t, nil)
	cmd := exec.CommandContext(t.Context(), "nsenter", "-t", fmt.Sprint(g.Process.Pid), "-p", "-m", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
		g.Program, "pass", "--many", "--socket", g.Socket)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	defer in.Close()
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(in, far) }()
	go func() { _, _ = io.Copy(far, out); _ = far.Close() }()
	mux, err := wire.HostMux(near)
	check(t, err)
	defer mux.Close()
	m := machine.New(func(context.Context) (net.Conn, error) { return mux.Open() }, nil)
	defer m.Close()
	if got := sh(t, m, "echo over one"); got.out != "over one\n" {
		t.Errorf("%q", got.out)
	}
	for range 20 {
		if got := sh(t, m, "head -c 300000 /dev/zero"); len(got.out) != 300000 {
			t.Errorf("%d bytes came", len(got.out))
		}
	}
}

// TestInstall: the copy can be run by everybody and read by nobody.
func TestInstall(t *testing.T) {
	dir, program := t.TempDir(), guestbuild.Build(t)
	for range 2 {
		if out, err := exec.CommandContext(t.Context(), program, "install", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "guest"))
	if err != nil || info.Mode().Perm() != 0o111 {
		t.Errorf("%v, %v", info, err)
	}
	var version bytes.Buffer
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "guest"), "version")
	cmd.Stdout = &version
	if err := cmd.Run(); err != nil || version.Len() == 0 {
		t.Errorf("%v: %q", err, version.String())
	}
}
