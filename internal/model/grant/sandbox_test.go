package grant_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"golang.org/x/sys/unix"
)

// site is a real sandbox with grants and a port that answers each caller with the run
// of its grant.
type site struct {
	guest   *machinetest.Guest
	machine *machine.Machine
	grants  *grant.Grants
	port    int
}

func newSite(t *testing.T) *site {
	t.Helper()
	locks, err := filelock.Open(filepath.Join(t.TempDir(), "leases"))
	check(t, err)
	s := &site{guest: machinetest.Start(t, nil)}
	s.machine = s.guest.Machine(t, nil)
	s.grants = grant.NewGrants("s", s.machine, locks)
	s.port = freePort(t)
	inner, err := s.machine.Listen(patience(t), s.port, &machine.PortOptions{
		WithGrant: true, Gate: func(context.Context, machine.Caller) error { return nil },
	})
	check(t, err)
	tellRuns(t, s.grants.Listener(inner, true))
	return s
}

// tellRuns answers each line that a caller sends with the name of its run.
func tellRuns(t *testing.T, l *grant.Listener) {
	t.Helper()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { tellRun(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
}

func tellRun(conn net.Conn) {
	defer conn.Close()
	name := "403"
	if g := grant.Of(conn); g != nil {
		name = g.Terms().Run
	}
	line := make([]byte, 1)
	for {
		if _, err := io.WriteString(conn, name+"\n"); err != nil {
			return
		}
		if _, err := conn.Read(line); err != nil {
			return
		}
	}
}

func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// open opens a grant for a run.
func (s *site) open(t *testing.T, run string) *grant.Grant {
	t.Helper()
	g, err := s.grants.Open(patience(t), hour(run))
	check(t, err)
	return g
}

// ask is a program that connects to the port and prints what it is taken for, or
// why it could not find out.
const ask = `
import socket, sys
def ask(host="127.0.0.1", family=socket.AF_INET):
    try:
        s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(30)
        s.connect((host, PORT))
        return s, s.recv(100).decode().strip() or "closed"
    except OSError as e:
        return None, type(e).__name__
`

// python runs a program under a grant, or under none, and returns its output.
func (s *site) python(t *testing.T, g *grant.Grant, program string) string {
	t.Helper()
	var out, errs bytes.Buffer
	command := s.command(g, program)
	command.Stdout, command.Stderr = &out, &errs
	result, err := s.machine.Exec(patience(t), command)
	check(t, err)
	if result.ExitCode != 0 {
		t.Fatalf("exit %d: %s", result.ExitCode, errs.String())
	}
	return strings.TrimSpace(out.String())
}

func (s *site) command(g *grant.Grant, program string) *machine.Command {
	program = strings.ReplaceAll(ask+program, "PORT", fmt.Sprint(s.port))
	command := &machine.Command{Argv: []string{"python3", "-c", program}, Env: []string{"HOME=/"}}
	if g != nil {
		command.Grant = g.ID()
	}
	return command
}

const justAsk = `print(ask()[1])`

func TestWithoutAGrant(t *testing.T) {
	s := newSite(t)
	if got := s.python(t, nil, justAsk); got != "403" {
		t.Errorf("nobody has a grant: %q", got)
	}
	g := s.open(t, "run")
	if got := s.python(t, nil, justAsk); got != "403" {
		t.Errorf("started beside the grant: %q", got)
	}
	if got := s.python(t, g, justAsk); got != "run" {
		t.Errorf("started under it: %q", got)
	}
	check(t, g.Close())
	if _, err := s.machine.Exec(patience(t), s.command(g, justAsk)); !errors.Is(err, machine.ErrNoGrant) {
		t.Errorf("starting under a closed grant: %v", err)
	}
}

// TestKindsOfCallers connects in the ways that programs do.
func TestKindsOfCallers(t *testing.T) {
	s := newSite(t)
	g := s.open(t, "run")
	for name, program := range map[string]string{
		"IPv4":                     `print(ask()[1])`,
		"IPv6":                     `print(ask("::1", socket.AF_INET6)[1])`,
		"IPv4 over an IPv6 socket": `print(ask("::ffff:127.0.0.1", socket.AF_INET6)[1])`,
		"a grandchild":             "import subprocess\nprint(subprocess.run([sys.executable, '-c', sys.orig_argv[2].split('import subprocess')[0] + 'print(ask()[1])'], capture_output=True).stdout.decode())",
		"a connection that was inherited": `
import os
s, got = ask()
if os.fork() == 0:
    s.send(b"x"); print(s.recv(100).decode().strip(), flush=True); os._exit(0)
os.wait()`,
		"a thread": `
import threading
t = threading.Thread(target=lambda: print(ask()[1])); t.start(); t.join()`,
	} {
		if got := s.python(t, g, program); got != "run" {
			t.Errorf("%s: %q", name, got)
		}
	}
	check(t, g.Close())
}

// daemon leaves a process behind in every way known to hide one: another session,
// a double fork, TERM ignored, its limits lowered. Each asks over and over.
const daemon = `
import fcntl, os, resource, signal, time
def stay(hide):
    if os.fork(): return
    os.setsid()
    if os.fork(): os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if hide:
        for which in (10, 15): # RLIMIT_LOCKS and RLIMIT_RTTIME, which carry the mark
            resource.setrlimit(which, (1, 1))
    log = open(DIR + "/seen-%d" % os.getpid(), "a")
    fcntl.flock(log, fcntl.LOCK_EX) # for as long as it lives
    while True:
        s, got = ask()
        log.write(got + "\n"); log.flush()
        time.sleep(0.01)
stay(False); stay(True)
`

// TestLeftOverProcesses lets a run leave processes behind. They end with its
// grant, and those started without one get nothing from the next. Of the latter,
// one that hides its descent ends, too: it could be the run's.
func TestLeftOverProcesses(t *testing.T) {
	s := newSite(t)
	leave := strings.ReplaceAll(daemon, "DIR", fmt.Sprintf("%q", s.guest.Dir))
	first := s.open(t, "first")
	s.python(t, first, leave)
	s.eventually(t, "two of the first run ask", func() bool { return len(s.seen(t)) == 2 })
	s.python(t, nil, leave)
	s.eventually(t, "two more ask", func() bool { return len(s.seen(t)) == 4 })
	check(t, first.Close())
	if got := s.running(t); got != 1 {
		t.Errorf("%d processes live on; want the one that was started without a grant and says so", got)
	}
	second := s.open(t, "second")
	before := s.seen(t)
	s.eventually(t, "the one that is left asked again", func() bool { return s.grew(t, before) == 1 })
	if got := s.python(t, second, justAsk); got != "second" {
		t.Errorf("the second's own: %q", got)
	}
	check(t, second.Close())
	for name, lines := range s.seen(t) {
		if strings.Contains(lines, "second") {
			t.Errorf("%s was served under the second run's grant", name)
		}
	}
}

// seen is what each process that was left behind got to see.
func (s *site) seen(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(s.guest.Dir + "/seen-*")
	check(t, err)
	seen := map[string]string{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		check(t, err)
		if len(content) > 0 {
			seen[path] = string(content)
		}
	}
	return seen
}

// grew counts those that saw more since.
func (s *site) grew(t *testing.T, before map[string]string) int {
	t.Helper()
	n := 0
	for path, content := range s.seen(t) {
		if len(content) > len(before[path]) {
			n++
		}
	}
	return n
}

// running counts those that live: each holds a lock.
func (s *site) running(t *testing.T) int {
	t.Helper()
	n := 0
	for path := range s.seen(t) {
		file, err := os.Open(path)
		check(t, err)
		if unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil {
			n++
		}
		check(t, file.Close())
	}
	return n
}

// logs is what a process in the background has written.
func (s *site) logs(t *testing.T, id string) string {
	t.Helper()
	logs, err := s.machine.Logs(patience(t), id, machine.LogRequest{})
	check(t, err)
	var all []byte
	for _, chunk := range logs.Stdout.Chunks {
		all = append(all, chunk.Bytes...)
	}
	return string(all)
}

func (s *site) eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// TestConnectionsEndWithTheGrant keeps a connection open over the end of a run,
// in a process that was not started under its grant and got it from one that was.
func TestConnectionsEndWithTheGrant(t *testing.T) {
	s := newSite(t)
	g := s.open(t, "run")
	id, err := s.machine.Start(patience(t), s.command(nil, `
import array, os
l = socket.socket(socket.AF_UNIX); l.bind("\0atoll-test-PORT"); l.listen()
c, _ = l.accept()
fds = array.array("i")
_, anc, _, _ = c.recvmsg(1, socket.CMSG_LEN(4))
fds.frombytes(anc[0][2][:4])
s = socket.socket(fileno=fds[0]); s.settimeout(50)
s.send(b"x"); print(s.recv(100).decode().strip(), flush=True)
print("then %d bytes" % len(s.recv(100)))
`))
	check(t, err)
	s.python(t, g, `
import array, time
s, got = ask()
c = socket.socket(socket.AF_UNIX)
for i in range(3000):
    try: c.connect("\0atoll-test-PORT"); break
    except OSError: time.sleep(0.01)
c.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno()]))])
`)
	s.eventually(t, "the other process uses the connection", func() bool { return strings.HasPrefix(s.logs(t, id), "run") })
	check(t, g.Close())
	_, err = s.machine.Wait(patience(t), id)
	check(t, err)
	if got := s.logs(t, id); got != "run\nthen 0 bytes\n" {
		t.Errorf("%q", got)
	}
}
