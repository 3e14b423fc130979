//go:build linux

package vmcmd_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/cli/nonlinux"
	"github.com/atoll-run/atoll/internal/testkit/limatest"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/terminaltest"
)

// macVariable is the home directory of a process of this program that is the atoll of a Mac.
const macVariable = "VMCMD_TEST_HOME"

// onMac runs a command line as the program does on a Mac.
func onMac() int {
	ctx, stop := nonlinux.WithSignals(context.Background())
	defer stop()
	return nonlinux.Main(ctx, os.Args[1:], &nonlinux.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Home: os.Getenv(macVariable), System: "darwin"})
}

// command returns the atoll of a Mac, called in the project.
func (m *mac) command(args ...string) *exec.Cmd {
	m.Helper()
	self, err := os.Executable()
	if err != nil {
		m.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = filepath.Join(m.home, "project")
	cmd.Env = append(os.Environ(), macVariable+"="+m.home, "TERM=xterm", "ATOLL_STATE_DIR="+m.env["ATOLL_STATE_DIR"])
	return cmd
}

// obey says its window's size, each new one and each signal; TERM and HUP end it.
const obey = `trap 'echo "size $(stty size)"' WINCH
trap 'echo "caught INT"' INT
trap 'echo "caught TERM"; exit 41' TERM
trap 'echo hup >/tmp/obey-hup; echo "caught HUP"; exit 42' HUP
echo "ready $(stty size 2>/dev/null)"
while :; do sleep 0.1; done
`

// Programs inside have the terminal of the Mac: its size and each new one, its keys, the
// signals that atoll gets; the exit code is theirs, and the terminal is as before at the end.
func TestTerminals(t *testing.T) {
	need.Program(t, "/usr/sbin/sshd", "openssh-server")
	need.Program(t, "ssh", "openssh-client")
	m := newMac(t)
	m.file("project/obey.sh", obey, 0o644)
	m.configure("")
	m.must("", "up")
	for _, c := range []struct {
		name   string
		args   []string
		typed  string // begins obey.sh
		signal syscall.Signal
		want   string
		code   int
	}{
		{"shell", []string{"vm", "shell", "sh", "/mnt/openclaw/obey.sh"}, "", syscall.SIGTERM, "caught TERM", 41},
		{"shell, SIGHUP", []string{"vm", "shell", "sh", "/mnt/openclaw/obey.sh"}, "", syscall.SIGHUP, "caught HUP", 42},
		{"login shell", []string{"vm", "shell"}, "exec sh /mnt/openclaw/obey.sh\n", syscall.SIGTERM, "caught TERM", 41},
		{"ssh", []string{"vm", "ssh"}, "exec sh /mnt/openclaw/obey.sh\n", syscall.SIGTERM, "", 255},
		{"a verb", []string{"shell", "--", "sh", "obey.sh"}, "", syscall.SIGTERM, "", 143},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := terminaltest.Start(t, m.command(c.args...), 30, 100)
			s.Press(c.typed)
			s.Await("ready 30 100")
			s.Resize(40, 120)
			s.Await("size 40 120")
			s.Press("\x03")
			s.Await("caught INT")
			if err := s.Cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			s.Await(c.want)
			if code := s.End(); code != c.code {
				t.Errorf("exit code %d, want %d:\n%s", code, c.code, s.Text())
			}
		})
	}
	t.Run("keys", func(t *testing.T) { m.keys(t) })
	t.Run("a connection that is cut", func(t *testing.T) { m.cut(t) })
	t.Run("no terminal", func(t *testing.T) { m.piped(t) })
}

// keys types a line, and the end of input.
func (m *mac) keys(t *testing.T) {
	t.Helper()
	s := terminaltest.Start(t, m.command("shell", "--", "sh", "-c", "echo ready; cat; exit 7"), 30, 100)
	s.Await("ready")
	s.Press("typed\n")
	s.Await("typed\r\ntyped\r\n")
	s.Press("\x04")
	if code := s.End(); code != 7 {
		t.Errorf("exit code %d:\n%s", code, s.Text())
	}
}

// cut kills ssh, which has the terminal in raw mode: it is restored, and the program inside
// is hung up.
func (m *mac) cut(t *testing.T) {
	t.Helper()
	s := terminaltest.Start(t, m.command("vm", "shell", "sh", "/mnt/openclaw/obey.sh"), 30, 100)
	s.Await("ready 30 100")
	killed := 0
	for _, pid := range children(t, children(t, []int{s.Cmd.Process.Pid})) {
		if name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm"); string(name) == "ssh\n" {
			killed++
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if code := s.End(); killed != 1 || code != 255 {
		t.Errorf("%d were killed, exit code %d:\n%s", killed, code, s.Text())
	}
	m.must("hup", "shell", "sh", "-c", "while ! cat /tmp/obey-hup; do sleep 0.1; done")
}

// children returns the child processes of processes.
func children(t *testing.T, of []int) (list []int) {
	t.Helper()
	for _, pid := range of {
		tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
		for _, task := range tasks {
			text, _ := os.ReadFile(task)
			for field := range strings.FieldsSeq(string(text)) {
				child, err := strconv.Atoi(field)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, child)
			}
		}
	}
	return list
}

// piped passes signals on to a program without a terminal, which ssh would leave running.
func (m *mac) piped(t *testing.T) {
	t.Helper()
	cmd := m.command("vm", "shell", "sh", "/mnt/openclaw/obey.sh")
	cmd.Env = append(cmd.Env, limatest.SSHVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, c := range []struct {
		line   string
		signal os.Signal
	}{{"ready ", os.Interrupt}, {"caught INT", syscall.SIGTERM}, {"caught TERM", nil}} {
		if !lines.Scan() || lines.Text() != c.line {
			t.Fatalf("%q, want %q", lines.Text(), c.line)
		}
		if c.signal != nil {
			_ = cmd.Process.Signal(c.signal)
		}
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 41 {
		t.Errorf("%v", err)
	}
}
