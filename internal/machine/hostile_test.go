package machine_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
)

// python runs a program inside and returns its output.
func python(t *testing.T, m *machine.Machine, program string) string {
	t.Helper()
	got := run(t, m, &machine.Command{Argv: []string{"python3", "-c", program}})
	if got.ExitCode != 0 {
		t.Fatalf("exit %d: %s", got.ExitCode, got.err)
	}
	return got.out
}

// TestGuestCannotBeKilledFromInside sends it every signal in every way, and does
// to it what else a process of the same user may do to another.
func TestGuestCannotBeKilledFromInside(t *testing.T) {
	tests := map[string]string{
		"kill": `
import os
for n in range(1, 65):
    try: os.kill(1, n)
    except OSError as e: print(n, e)
`,
		"tgkill every thread": `
import os, ctypes
libc = ctypes.CDLL(None)
for tid in os.listdir('/proc/1/task'):
    for n in range(1, 65): libc.syscall(234, 1, int(tid), n)
`,
		"sigqueue with a forged sender": `
import ctypes, struct
libc = ctypes.CDLL(None)
for n in range(1, 65):
    for code in (-1, -2, -3, -4, -5, -60):
        info = ctypes.create_string_buffer(struct.pack('iiiiii', n, 0, code, 0, 0, 0).ljust(128, b'\0'))
        libc.syscall(129, 1, n, info)
`,
		"flood": `
import os, random
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        for _ in range(20000):
            os.kill(1, random.randint(1, 64))
        os._exit(0)
    children.append(pid)
for pid in children: os.waitpid(pid, 0)
`,
		"pidfd": `
import os, signal
fd = os.pidfd_open(1)
for n in range(1, 65):
    try: signal.pidfd_send_signal(fd, n)
    except OSError as e: print(n, e)
`,
		"processor limit": `
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
for resource in range(16):
    limit = ctypes.create_string_buffer(struct.pack('QQ', 0, 0))
    r = libc.prlimit(1, resource, limit, None)
    assert r == -1 and ctypes.get_errno() == 1, (resource, r, ctypes.get_errno())
    assert libc.prlimit(1, resource, None, limit) == 0
assert libc.prlimit(0, 7, ctypes.create_string_buffer(struct.pack('QQ', 100, 100)), None) == 0
`,
		"trace": `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for request in (16, 0x4206):
    assert libc.ptrace(request, 1, 0, 0) == -1, request
`,
		"memory and descriptors": `
for name in ('mem', 'maps', 'environ', 'auxv', 'syscall', 'stack', 'fd', 'fdinfo', 'root', 'cwd', 'exe', 'map_files'):
    import os
    try:
        path = '/proc/1/' + name
        if name in ('fd', 'fdinfo', 'map_files'): os.listdir(path)
        elif name in ('root', 'cwd', 'exe'): os.readlink(path)
        else: open(path, 'rb').read(1)
        print('could open', path)
    except OSError: pass
for name in ('oom_score_adj', 'mem', 'clear_refs', 'timerslack_ns', 'coredump_filter'):
    try:
        os.write(os.open('/proc/1/' + name, os.O_WRONLY), b'1')
        print('could write', name)
    except OSError: pass
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.syscall(438, os.pidfd_open(1), 0, 0) == -1, 'pidfd_getfd'
`,
		"stop": `
import os, signal
os.kill(1, signal.SIGSTOP); os.kill(1, signal.SIGCONT)
`,
		"everybody": `
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0: os._exit(signal.pause() or 0)
os.kill(-1, signal.SIGTERM)
`,
	}
	_, m := start(t)
	before, err := m.Info(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	if before.PID != 1 || before.Dumpable || before.UID == 0 || strings.Trim(before.CapEff, "0") != "" || !before.NoNewPrivs {
		t.Fatalf("not the sandbox that is meant: %+v", before)
	}
	for name, program := range tests {
		t.Run(name, func(t *testing.T) {
			if out := python(t, m, program); out != "" {
				t.Error(out)
			}
			if err := m.Ping(patience(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
	after, err := m.Info(patience(t))
	if err != nil || after.PID != 1 {
		t.Fatalf("%+v %v", after, err)
	}
}

func TestGuestEndsWhenAskedFromOutside(t *testing.T) {
	g, m := start(t)
	if _, err := m.Start(patience(t), &machine.Command{Shell: "trap 'echo bye > " + g.Dir + "/bye; exit' TERM; while :; do sleep 0.01; done"}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if err := g.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	state, err := g.Process.Wait()
	if err != nil || !state.Success() {
		t.Errorf("%v %v", state, err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	if _, err := os.Stat(filepath.Join(g.Dir, "bye")); err != nil {
		t.Errorf("processes could not say farewell: %v", err)
	}
}

// TestSocketGames has code inside do to the socket whatever it can.
func TestSocketGames(t *testing.T) {
	tests := map[string]string{
		"removed":               `rm guest.sock`,
		"replaced by a file":    `rm guest.sock; echo > guest.sock`,
		"replaced by a dir":     `rm guest.sock; mkdir -p guest.sock/x/y`,
		"replaced by a link":    `rm guest.sock; ln -s /dev/null guest.sock`,
		"renamed":               `mv guest.sock other.sock`,
		"replaced by a socket":  `rm guest.sock; python3 -c 'import socket,time; s=socket.socket(socket.AF_UNIX); s.bind("guest.sock"); s.listen(); time.sleep(0.1)'`,
		"directory not allowed": `rm guest.sock; chmod 500 .; sleep 0.6; chmod 700 .`,
		"removed in a loop":     `for i in $(seq 200); do rm -f guest.sock; done`,
	}
	for name, script := range tests {
		t.Run(name, func(t *testing.T) {
			g, m := start(t)
			if got := run(t, m, &machine.Command{Shell: script, Dir: g.Dir}); got.ExitCode != 0 {
				t.Fatalf("%+v", got)
			}
			fresh := g.Machine(t, nil)
			eventually(t, "a new wire", func() bool { return fresh.Ping(patience(t)) == nil })
			if err := m.Ping(patience(t)); err != nil {
				t.Errorf("the old wire: %v", err)
			}
		})
	}
}

func TestGuestRefusesHostsFromInside(t *testing.T) {
	g, m := start(t)
	out := python(t, m, fmt.Sprintf(`
import socket
for _ in range(2000):
    s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(%q)
    try:
        s.sendall(b"atoll\0\r\n\0\0\0\x40{")
        data = s.recv(100)
    except OSError: data = b''
    if data: print(data)
`, g.Socket))
	if out != "" {
		t.Error(out)
	}
	if err := g.Machine(t, nil).Ping(patience(t)); err != nil {
		t.Error(err)
	}
}

func TestGuestUnderAForkBomb(t *testing.T) {
	g := machinetest.Start(t, &machinetest.Options{Pids: 100})
	m := g.Machine(t, nil)
	bomb, err := m.Start(patience(t), &machine.Command{Argv: []string{"python3", "-c", forksToTheLimit}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the sandbox is full", func() bool {
		_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"/bin/true"}})
		if err != nil && !errors.Is(err, machine.ErrExhausted) {
			t.Fatal(err)
		}
		return err != nil
	})
	for range 50 { // many things at once, none of which may need a thread that is not there
		for range 20 {
			go func() { _, _ = m.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/true"}}) }()
		}
		if err := m.Ping(patience(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Machine(t, nil).Ping(patience(t)); err != nil {
		t.Errorf("a new wire: %v", err)
	}
	if err := m.End(patience(t), bomb, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is over", func() bool { return len(alive(t, m)) == 0 })
}

func TestOutOfMemory(t *testing.T) {
	g := machinetest.Start(t, &machinetest.Options{Memory: 64 << 20})
	m := g.Machine(t, nil)
	eat := `x = []
while True: x.append(bytearray(1 << 20))`
	got := run(t, m, &machine.Command{Argv: []string{"python3", "-c", eat}})
	if !got.OOM || got.Signal != "SIGKILL" {
		t.Errorf("killed for memory: %+v", got.Result)
	}
	got = run(t, m, &machine.Command{Shell: `python3 -c 'x = []
while True: x.append(bytearray(1 << 20))'`})
	if !got.OOM || got.ExitCode != 137 {
		t.Errorf("child killed for memory: %+v", got.Result)
	}
	time.Sleep(1100 * time.Millisecond)
	if got := sh(t, m, "kill -9 $$"); got.OOM || got.Signal != "SIGKILL" {
		t.Errorf("killed for another reason: %+v", got.Result)
	}
	if err := m.Ping(patience(t)); err != nil {
		t.Error(err)
	}
}

func TestLimitOfOpenFilesIsTheSandboxs(t *testing.T) {
	g := machinetest.Start(t, &machinetest.Options{Prepare: "ulimit -Sn 1234; ulimit -Hn 4321"})
	if got := sh(t, g.Machine(t, nil), "ulimit -Sn; ulimit -Hn"); got.out != "1234\n4321\n" {
		t.Errorf("%q", got.out)
	}
}

func TestGuestWithoutDescriptors(t *testing.T) {
	g := machinetest.Start(t, &machinetest.Options{Prepare: "ulimit -Sn 40; ulimit -Hn 40"})
	m := g.Machine(t, nil)
	var ids []string
	for {
		id, err := m.Start(patience(t), &machine.Command{Argv: []string{"sleep", "1000"}})
		if errors.Is(err, machine.ErrExhausted) {
			break
		}
		if err != nil || len(ids) > 40 {
			t.Fatal(len(ids), err)
		}
		ids = append(ids, id)
	}
	if err := m.Ping(patience(t)); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if err := m.End(patience(t), id, time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "it works again", func() bool {
		result, err := m.Exec(patience(t), &machine.Command{Argv: []string{"/bin/true"}})
		return err == nil && result.ExitCode == 0
	})
}

// TestEverybodyIsStopped has a process stop all others as fast as it can, new
// ones before their programs run, too.
func TestEverybodyIsStopped(t *testing.T) {
	_, m := start(t)
	id := background(t, m, &machine.Command{Argv: []string{"python3", "-c", `
import os, signal
print('ready', flush=True)
while True:
    try: os.kill(-1, signal.SIGSTOP)
    except OSError: pass
`}})
	eventually(t, "it has begun", func() bool { p, err := m.Process(patience(t), id); return err == nil && p.Stdout > 0 })
	var stalled atomic.Int32
	var running sync.WaitGroup
	for range 20 {
		running.Go(func() {
			result, err := m.Exec(patience(t), &machine.Command{Argv: []string{"true"}, Timeout: 500 * time.Millisecond, Grace: time.Millisecond})
			if err != nil && !errors.Is(err, machine.ErrExhausted) {
				t.Errorf("exec: %v", err)
			}
			if err != nil || result.TimedOut {
				stalled.Add(1)
			}
		})
		begin := time.Now()
		if err := m.Ping(patience(t)); err != nil || time.Since(begin) > 3*time.Second {
			t.Fatalf("ping after %v: %v", time.Since(begin), err)
		}
	}
	running.Wait()
	t.Logf("%d of 20 commands were kept from running", stalled.Load())
	if err := m.End(patience(t), id, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, m, "echo fine"); got.out != "fine\n" {
		t.Errorf("%+v", got)
	}
	if left := alive(t, m); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestZombies leaves the guest thousands of orphans to reap.
func TestZombies(t *testing.T) {
	_, m := start(t)
	sh(t, m, "for i in $(seq 2000); do (true &) ; done")
	eventually(t, "all are reaped", func() bool {
		return strings.TrimSpace(sh(t, m, `ls -d /proc/[0-9]* | wc -l`).out) == "3"
	})
}

func TestGuestIsSmall(t *testing.T) {
	g, m := start(t)
	file, err := os.Stat(g.Program)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("program: %d bytes", file.Size())
	if file.Size() > 6<<20 { // 1 MB of it is the SFTP server
		t.Errorf("the program has %d bytes, over 6 MiB", file.Size())
	}
	if err := m.Ping(patience(t)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	check := func(when string, anonymous int64) {
		t.Helper()
		got := memory(t, g)
		t.Logf("%s: %+v", when, got)
		// How much of the program's file counts depends on the page cache, which
		// all sandboxes share.
		if got["VmRSS"] > 8<<20 || got["RssAnon"] > anonymous {
			t.Errorf("%s: %d bytes resident, %d of its own, over %d", when, got["VmRSS"], got["RssAnon"], anonymous)
		}
	}
	check("fresh", 2<<20)
	for range 4 {
		run(t, m, &machine.Command{Argv: []string{"head", "-c", "268435456", "/dev/zero"}, Stdout: io.Discard})
	}
	t.Logf("after 1 GiB: %+v", memory(t, g))
	// Mostly 2.8 to 3.2 MB: what the collector finds free is not all given back.
	const rested = 3500 << 10
	eventually(t, "the guest is small again", func() bool { return memory(t, g)["RssAnon"] <= rested })
	check("when it has rested", rested)
}

// memory reads what the kernel says of the guest, in bytes.
func memory(t *testing.T, g *machinetest.Guest) map[string]int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "VmRSS", "RssAnon", "RssFile", "Threads":
			n, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if name != "Threads" {
				n <<= 10
			}
			found[name] = n
		}
	}
	return found
}
