//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// screen is a terminal in which atoll runs.
type screen struct {
	*testing.T
	cmd    *exec.Cmd
	master *os.File
	mu     sync.Mutex
	shown  bytes.Buffer
	seen   int // up to where text was awaited
	done   chan struct{}
}

// screen starts atoll in a terminal of its own, in the repository.
func (p *agentPlace) screen(args ...string) *screen {
	p.t.Helper()
	master, slave := openTerminal(p.t)
	s := &screen{T: p.t, master: master, done: make(chan struct{}), cmd: exec.CommandContext(p.t.Context(), "atoll", args...)}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
		p.t.Fatal(err)
	}
	s.cmd.Dir, s.cmd.Env = filepath.Clean(p.repository), p.env
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err := s.cmd.Start()
	_ = slave.Close()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = master.Close() })
	go s.watch()
	return s
}

func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, errName := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	errLock := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	slave, errOpen := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err := errors.Join(errName, errLock, errOpen); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// watch keeps what is shown until the terminal is closed.
func (s *screen) watch() {
	defer close(s.done)
	buffer := make([]byte, 4096)
	for {
		n, err := s.master.Read(buffer)
		s.mu.Lock()
		s.shown.Write(buffer[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// controls are what moves the cursor or paints: programs put words anywhere.
var controls = lazyregexp.New(`\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b[\]P][^\x07\x1b]*(\x07|\x1b\\)|\x1b.|\s`)

// text is what was shown, without blanks and controls.
func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return controls.ReplaceAllString(s.shown.String(), "")
}

// await waits until words are shown after those that were awaited before.
func (s *screen) await(words string) {
	s.Helper()
	words = strings.ReplaceAll(words, " ", "")
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		text := s.text()
		if at := strings.Index(text[min(s.seen, len(text)):], words); at >= 0 {
			s.seen += at + len(words)
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("nothing says %q:\n%s", words, text)
		}
	}
}

// enter types a line: the keys, and when they are shown the return key.
func (s *screen) enter(line string) {
	s.Helper()
	if _, err := s.master.WriteString(line); err != nil {
		s.Fatal(err)
	}
	s.await(line)
	if _, err := s.master.WriteString("\r"); err != nil {
		s.Fatal(err)
	}
}

// wait returns the exit code.
func (s *screen) wait() int {
	s.Helper()
	err := s.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		s.Fatal(err)
	}
	return 0
}
