//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// screen is a terminal in which atoll runs: a window of a tmux of its own, which draws
// what programs paint and answers what they ask of a terminal.
type screen struct {
	*testing.T
	tmux, socket string
	code         string // the file that gets the exit code
	env          []string
}

const screenConfig = `set -g remain-on-exit on
set -g default-terminal xterm-256color
set -g status off
`

// keepCode runs a program and writes its exit code to a file; Ctrl-C ends the program
// alone.
const keepCode = `trap : INT; "$@"; echo $? >"$0"`

// screen starts atoll in a terminal of its own, in the repository.
func (p *agentPlace) screen(args ...string) *screen {
	p.t.Helper()
	program, err := exec.LookPath("atoll")
	if err != nil {
		p.t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "tmux")
	if err != nil {
		p.t.Fatal(err)
	}
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte(screenConfig), 0o600); err != nil {
		p.t.Fatal(err)
	}
	s := &screen{T: p.t, tmux: need.Program(p.t, "tmux", "tmux"), socket: filepath.Join(dir, "s"), code: filepath.Join(dir, "code"), env: p.env}
	p.t.Cleanup(func() {
		_, _ = s.command("kill-server").CombinedOutput() // it has ended if the test failed early
		_ = os.RemoveAll(dir)
	})
	s.run(append([]string{"-f", config, "new-session", "-d", "-x", "120", "-y", "40", "-c", filepath.Clean(p.repository), "/bin/sh", "-c", keepCode, s.code, program}, args...)...)
	return s
}

// command is a command of tmux.
func (s *screen) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.tmux, append([]string{"-S", s.socket}, args...)...)
	cmd.Env = append(s.env, "LC_ALL=C.UTF-8", "SHELL=/bin/sh")
	return cmd
}

func (s *screen) run(args ...string) string {
	s.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// text is what the screen shows.
func (s *screen) text() string {
	s.Helper()
	return s.run("capture-pane", "-p")
}

// await waits until the screen shows words, whatever the blanks between them.
func (s *screen) await(words string) {
	s.Helper()
	words = withoutBlanks(words)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		text := s.text()
		if strings.Contains(withoutBlanks(text), words) {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("nothing says %q:\n%s", words, text)
		}
	}
}

func withoutBlanks(text string) string { return strings.Join(strings.Fields(text), "") }

// send types text, and then the return key if it ends with one.
func (s *screen) send(text string) {
	s.Helper()
	if line := strings.TrimSuffix(text, "\r"); line != "" {
		s.run("send-keys", "-l", "--", line)
	}
	if strings.HasSuffix(text, "\r") {
		s.run("send-keys", "Enter")
	}
}

// interrupt types Ctrl-C.
func (s *screen) interrupt() {
	s.Helper()
	s.run("send-keys", "C-c")
}

// enter types a line: the keys, and when they are shown the return key.
func (s *screen) enter(line string) {
	s.Helper()
	s.send(line)
	s.await(line)
	s.send("\r")
}

// wait returns the exit code. tmux closes a terminal before it knows the code, and at
// times never does.
func (s *screen) wait() int {
	s.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		text, _ := os.ReadFile(s.code) // it is there at the end
		if line, whole := strings.CutSuffix(string(text), "\n"); whole {
			n, err := strconv.Atoi(line)
			if err != nil {
				s.Fatalf("the end of atoll: %q:\n%s", line, s.text())
			}
			return n
		}
		if time.Now().After(deadline) {
			s.Fatalf("atoll goes on:\n%s", s.text())
		}
	}
}
