package machine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

// freePort is a port that nothing listens on: guests of tests share the host's
// network.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// open lets everybody in.
func open(context.Context, machine.Caller) error { return nil }

func openPort(gate func(context.Context, machine.Caller) error) *machine.PortOptions {
	return &machine.PortOptions{Gate: gate}
}

func TestPortsHTTP(t *testing.T) {
	_, m := start(t)
	port := freePort(t)
	l, err := m.Listen(patience(t), port, openPort(open))
	check(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s from %s: %d bytes", r.Method, r.URL.Path, strings.Split(r.RemoteAddr, ":")[0], len(body))
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	got := python(t, m, fmt.Sprintf(`
import urllib.request
for host in ("127.0.0.1", "localhost"):
    for i in range(20):
        r = urllib.request.urlopen("http://%%s:%d/path" %% host, data=b"x"*100000)
        assert r.read() == b"POST /path from 127.0.0.1: 100000 bytes", r
import http.client
c = http.client.HTTPConnection("127.0.0.1", %d)
for i in range(20):
    c.request("GET", "/kept")
    print(c.getresponse().read().decode()) if i == 19 else c.getresponse().read()
`, port, port))
	if got != "GET /kept from 127.0.0.1: 0 bytes\n" {
		t.Errorf("%q", got)
	}
	check(t, server.Close())
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	if got := sh(t, m, fmt.Sprintf("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", %d))' 2>&1 | tail -1", port)); !strings.Contains(got.out, "refused") {
		t.Errorf("after the end: %q", got.out)
	}
}

func TestPortsIPv6(t *testing.T) {
	_, m := start(t)
	port := freePort(t)
	ctx, cancel := context.WithCancel(patience(t))
	served := make(chan error, 1)
	go func() {
		served <- m.Serve(ctx, port, openPort(open), func(c net.Conn) { fmt.Fprint(c, c.RemoteAddr().(*net.TCPAddr).IP) })
	}()
	eventually(t, "it answers on ::1", func() bool {
		got := run(t, m, &machine.Command{Argv: []string{"python3", "-c", fmt.Sprintf("import socket; print(socket.create_connection(('::1', %d)).recv(100).decode())", port)}})
		return got.out == "::1\n"
	})
	cancel()
	check(t, <-served)
}

func TestPortsGate(t *testing.T) {
	_, m := start(t)
	port := freePort(t)
	var granted atomic.Bool
	gates := map[string]*machine.PortOptions{
		"none":  nil,
		"empty": {},
		"grant": openPort(func(_ context.Context, c machine.Caller) error {
			if !granted.Load() || c.Port != port {
				return errors.New("no grant")
			}
			return nil
		}),
	}
	ask := func() string {
		return sh(t, m, fmt.Sprintf(`python3 -c '
import socket
s = socket.create_connection(("127.0.0.1", %d))
s.sendall(b"hello")
print(s.recv(100).decode())' 2>&1 | tail -1`, port)).out
	}
	for name, options := range gates {
		t.Run(name, func(t *testing.T) {
			granted.Store(false)
			var handled atomic.Int32
			ctx, cancel := context.WithCancel(patience(t))
			served := make(chan error, 1)
			go func() {
				served <- m.Serve(ctx, port, options, func(c net.Conn) { handled.Add(1); fmt.Fprint(c, "answer") })
			}()
			eventually(t, "the port is open", func() bool { return !strings.Contains(ask(), "refused") })
			for range 20 {
				if got := ask(); !strings.Contains(got, "reset") && strings.TrimSpace(got) != "" {
					t.Fatalf("%q", got)
				}
			}
			if handled.Load() != 0 {
				t.Errorf("%d connections came through", handled.Load())
			}
			granted.Store(true)
			if got := ask(); (got == "answer\n") != (name == "grant") {
				t.Errorf("with a grant: %q", got)
			}
			cancel()
			check(t, <-served)
		})
	}
}

func TestPortsHalfClose(t *testing.T) {
	_, m := start(t)
	port := freePort(t)
	ctx, cancel := context.WithCancel(patience(t))
	served := make(chan error, 1)
	go func() {
		served <- m.Serve(ctx, port, openPort(open), func(c net.Conn) {
			all, err := io.ReadAll(c)
			time.Sleep(6 * time.Second) // longer than the wire would keep a stream half closed
			fmt.Fprintf(c, "%d bytes, %v", len(all), err)
		})
	}()
	eventually(t, "half closed from inside", func() bool {
		got := sh(t, m, fmt.Sprintf(`python3 -c '
import socket
s = socket.create_connection(("127.0.0.1", %d))
s.sendall(b"x" * 1000000)
s.shutdown(socket.SHUT_WR)
print(s.makefile().read())' 2>/dev/null`, port))
		return got.out == "1000000 bytes, <nil>\n"
	})
	cancel()
	check(t, <-served)
}

func TestPortsDial(t *testing.T) {
	_, m := start(t)
	port := freePort(t)
	_, err := m.Dial(patience(t), "tcp", port)
	wantErr(t, err, machine.ErrRefused)
	_, err = m.Dial(patience(t), "udp", port)
	wantErr(t, err, machine.ErrInvalid)
	_, err = m.Dial(patience(t), "tcp", 70000)
	wantErr(t, err, machine.ErrInvalid)
	id, err := m.Start(patience(t), &machine.Command{Argv: []string{"python3", "-c", fmt.Sprintf(`
import socket, threading
l = socket.create_server(("127.0.0.1", %d))
def echo(s):
    data = s.makefile("rb").read()
    s.sendall(data[::-1])
    s.close()
while True:
    s, _ = l.accept()
    threading.Thread(target=echo, args=(s,)).start()
`, port)}})
	check(t, err)
	defer func() { check(t, m.End(patience(t), id, time.Millisecond)) }()
	var conn net.Conn
	eventually(t, "it listens", func() bool { conn, err = m.Dial(patience(t), "tcp", port); return err == nil })
	conn.Close()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			conn, err := m.Dial(patience(t), "tcp", port)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			data := randomBytes(200_000 + i)
			go func() {
				_, _ = conn.Write(data)
				_ = conn.(interface{ CloseWrite() error }).CloseWrite()
			}()
			got, err := io.ReadAll(conn)
			if err != nil || len(got) != len(data) || got[0] != data[len(data)-1] {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	all.Wait()
}

func TestPortsBothDirectionsAtOnce(t *testing.T) {
	_, m := start(t)
	port := freePort(t)
	ctx, cancel := context.WithCancel(patience(t))
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- m.Serve(ctx, port, openPort(open), func(c net.Conn) { _, _ = io.Copy(c, c) })
	}()
	data := randomBytes(8 << 20)
	var conn net.Conn
	eventually(t, "it listens", func() (ok bool) {
		var err error
		conn, err = m.Dial(ctx, "tcp", port) // into the sandbox, and out again
		return err == nil
	})
	defer conn.Close()
	go func() {
		_, _ = conn.Write(data)
		_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	check(t, err)
	if !bytes.Equal(got, data) {
		t.Errorf("%d bytes came back, and not the same", len(got))
	}
	cancel()
	check(t, <-served)
}

func TestPortsDeadlines(t *testing.T) {
	_, m := start(t)
	port := freePort(t)
	l, err := m.Listen(patience(t), port, openPort(open))
	check(t, err)
	defer l.Close()
	inside, err := m.Dial(patience(t), "tcp", port)
	check(t, err)
	defer inside.Close()
	outside, err := l.Accept()
	check(t, err)
	defer outside.Close()
	buf := make([]byte, 10)
	for range 3 { // passed deadlines leave the connection as it was
		check(t, outside.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
		_, err = outside.Read(buf)
		if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
			t.Fatalf("%v", err)
		}
	}
	_, err = inside.Write([]byte("late"))
	check(t, err)
	check(t, outside.SetReadDeadline(time.Now().Add(10*time.Second)))
	if n, err := outside.Read(buf); err != nil || string(buf[:n]) != "late" {
		t.Errorf("%q %v", buf[:n], err)
	}
	check(t, outside.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	for err = nil; err == nil; { // nobody reads
		_, err = outside.Write(make([]byte, 64<<10))
	}
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
		t.Errorf("%v", err)
	}
}

func TestPortsTaken(t *testing.T) {
	g, m := start(t)
	port := freePort(t)
	l, err := m.Listen(patience(t), port, nil)
	check(t, err)
	_, err = m.Listen(patience(t), port, nil)
	wantErr(t, err, machine.ErrPortTaken)
	_, err = g.Machine(t, nil).Listen(patience(t), port, nil)
	wantErr(t, err, machine.ErrPortTaken)
	check(t, l.Close())
	again, err := m.Listen(patience(t), port, nil)
	check(t, err)
	check(t, again.Close())
	_, err = again.Accept()
	wantErr(t, err, net.ErrClosed)
	for _, port := range []int{0, -1, 65536} {
		_, err = m.Listen(patience(t), port, nil)
		wantErr(t, err, machine.ErrInvalid)
	}
}

func TestPortsTooManyConnectionsWait(t *testing.T) {
	_, m := start(t)
	port := freePort(t)
	const limit, total = 3, 40
	var now, most atomic.Int32
	ctx, cancel := context.WithCancel(patience(t))
	served := make(chan error, 1)
	go func() {
		served <- m.Serve(ctx, port, &machine.PortOptions{Gate: open, MaxConns: limit}, func(c net.Conn) {
			for n := now.Add(1); n > most.Load(); {
				most.Store(n)
			}
			defer now.Add(-1)
			_, _ = io.Copy(c, c)
		})
	}()
	ask := fmt.Sprintf(`
import socket, threading
def one():
    s = socket.create_connection(("127.0.0.1", %d))
    s.sendall(b"abc"); s.shutdown(socket.SHUT_WR)
    got.append(s.makefile().read())
    s.close()
got = []
ts = [threading.Thread(target=one) for _ in range(%d)]
[t.start() for t in ts]; [t.join() for t in ts]
print(got.count("abc"))
`, port, total)
	eventually(t, "all were served", func() bool {
		got := run(t, m, &machine.Command{Argv: []string{"python3", "-c", ask}})
		return got.out == fmt.Sprintln(total)
	})
	if most.Load() > limit {
		t.Errorf("%d at once", most.Load())
	}
	cancel()
	check(t, <-served)
}

// TestPortsComeBack breaks the wire: the port is opened again over the next.
func TestPortsComeBack(t *testing.T) {
	g, _ := start(t)
	var mu sync.Mutex
	var wires []net.Conn
	m := machine.New(func(ctx context.Context) (net.Conn, error) {
		conn, err := g.Dial(ctx)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		wires = append(wires, conn)
		return conn, nil
	}, nil)
	defer m.Close()
	port := freePort(t)
	ctx, cancel := context.WithCancel(patience(t))
	served := make(chan error, 1)
	go func() { served <- m.Serve(ctx, port, openPort(open), func(c net.Conn) { fmt.Fprint(c, "hi") }) }()
	other := g.Machine(t, nil)
	works := func() bool {
		got := sh(t, other, fmt.Sprintf(`python3 -c 'import socket; print(socket.create_connection(("127.0.0.1", %d)).recv(10).decode())' 2>/dev/null`, port))
		return got.out == "hi\n"
	}
	eventually(t, "it works", works)
	for range 3 {
		mu.Lock()
		for _, conn := range wires {
			conn.Close()
		}
		wires = nil
		mu.Unlock()
		eventually(t, "it works again", works)
	}
	cancel()
	check(t, <-served)
}
