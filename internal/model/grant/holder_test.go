package grant_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/wire"
)

// TestKilledHolder has another process of the host open a grant and leave processes in
// the sandbox. While it lives no grant of another account is opened, and one of its own
// account leaves its processes alone. When it was killed, the next grant that is opened
// alone finds everything of its run gone.
func TestKilledHolder(t *testing.T) {
	if dir := os.Getenv("GRANT_TEST_HOLD"); dir != "" {
		hold(t, dir)
	}
	s := newSite(t)
	locks, err := filelock.Open(filepath.Join(s.guest.Dir, "leases"))
	check(t, err)
	s.grants = grant.NewGrants("s", s.machine, locks)
	holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledHolder$")
	holder.Env = append(os.Environ(), "GRANT_TEST_HOLD="+s.guest.Dir)
	out, err := holder.StdoutPipe()
	check(t, err)
	check(t, holder.Start())
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || said != "open\n" {
		t.Fatalf("the holder says %q, %v", said, err)
	}
	s.eventually(t, "its processes run", func() bool { return len(s.seen(t)) == 2 })
	if _, err := s.grants.Open(patience(t), ofAccount("bob", "second")); !errors.Is(err, grant.ErrOtherAccount) {
		t.Errorf("another account while the holder lives: %v", err)
	}
	beside := s.open(t, "beside")
	check(t, beside.Close())
	if got := s.running(t); got != 2 {
		t.Errorf("%d processes of the holder live after the end of another grant; want 2", got)
	}
	check(t, holder.Process.Kill())
	_ = holder.Wait()
	if got := s.running(t); got != 2 {
		t.Fatalf("%d processes of the killed holder's run live; want 2, to see them end", got)
	}
	second := s.open(t, "second")
	if got := s.running(t); got != 0 {
		t.Errorf("%d processes of the killed holder's run live beside the next", got)
	}
	check(t, second.Close())
}

// hold opens a grant, leaves processes, and waits to be killed.
func hold(t *testing.T, dir string) {
	t.Helper()
	locks, err := filelock.Open(filepath.Join(dir, "leases"))
	check(t, err)
	m := machine.New(func(ctx context.Context) (net.Conn, error) {
		return wire.DialSocket(ctx, filepath.Join(dir, "guest.sock"))
	}, nil)
	s := &site{machine: m, grants: grant.NewGrants("s", m, locks), port: 9}
	s.python(t, s.open(t, "first"), strings.ReplaceAll(daemon, "DIR", fmt.Sprintf("%q", dir)))
	_, err = os.Stdout.WriteString("open\n")
	check(t, err)
	time.Sleep(time.Hour)
}

// TestBorrowedConnections are connections of processes without a grant that try to look
// as if they had one.
func TestBorrowedConnections(t *testing.T) {
	s := newSite(t)
	g := s.open(t, "run")
	// A process of the run takes descriptors from every process and ignores them.
	_, err := s.machine.Start(patience(t), s.command(g, `
import array
l = socket.socket(socket.AF_UNIX); l.bind("\0atoll-taker-PORT"); l.listen()
kept = []
while True:
    c, _ = l.accept(); kept.append(c.recvmsg(1, socket.CMSG_LEN(4))); c.send(b"k")
`))
	check(t, err)
	for name, program := range map[string]string{
		"a descriptor that a process of the run holds, too": `
import array, time
c = socket.socket(socket.AF_UNIX)
for i in range(3000):
    try: c.connect("\0atoll-taker-PORT"); break
    except OSError: time.sleep(0.01)
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.settimeout(30)
c.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno()]))])
c.recv(1)
s.connect(("127.0.0.1", PORT))
print(s.recv(100).decode().strip())`,
		"limits that encode no exec": `
import resource
resource.setrlimit(10, (1, 1)); resource.setrlimit(15, (1, 1))
print(ask()[1])`,
	} {
		if got := s.python(t, nil, program); got != "403" {
			t.Errorf("%s: %q", name, got)
		}
	}
	// The grant of a process that does not show its descriptors is unknown: it is not
	// served.
	if got := s.python(t, g, `
import ctypes
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) # PR_SET_DUMPABLE
print(ask()[1])`); got != "403" {
		t.Errorf("not dumpable: %q", got)
	}
	check(t, g.Close())
}

// TestManyExecsUnderOneGrant takes more marks than a grant reserves at a time,
// with others in between, and finds all of them again.
func TestManyExecsUnderOneGrant(t *testing.T) {
	s := newSite(t)
	g := s.open(t, "run")
	run := func(grant string) {
		_, err := s.machine.Exec(patience(t), &machine.Command{Argv: []string{"/bin/true"}, Grant: grant})
		check(t, err)
	}
	for range 300 {
		run(g.ID())
		run("")
	}
	if got := s.python(t, g, justAsk); got != "run" {
		t.Errorf("the 301st: %q", got)
	}
	if got := s.python(t, nil, justAsk); got != "403" {
		t.Errorf("the one beside: %q", got)
	}
	check(t, g.Close())
}
