//go:build linux

// Package terminaltest has terminals for tests: a program runs in one, keys are pressed,
// its window gets another size.
package terminaltest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long something may take until it is shown.
const patience = 2 * time.Minute

// Open returns the two ends of a terminal, which the caller closes.
func Open(tb testing.TB) (master, slave *os.File) {
	tb.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	n, errName := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	errLock := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	slave, errOpen := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err := errors.Join(errName, errLock, errOpen); err != nil {
		tb.Fatal(err)
	}
	return master, slave
}

// Screen is a terminal with a program in it.
type Screen struct {
	testing.TB
	Cmd *exec.Cmd

	master *os.File
	begin  unix.Termios
	seen   int // how much of what was shown has been waited for

	mu    sync.Mutex
	shown strings.Builder
	more  chan struct{} // something was shown
	done  chan struct{} // nothing more will be
}

// Start starts a program in a terminal of so many rows and columns, which is killed when
// the test ends.
func Start(tb testing.TB, cmd *exec.Cmd, rows, cols uint16) *Screen {
	tb.Helper()
	master, slave := Open(tb)
	s := &Screen{TB: tb, Cmd: cmd, master: master, more: make(chan struct{}, 1), done: make(chan struct{})}
	s.Resize(rows, cols)
	s.begin = s.settings()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err := cmd.Start()
	_ = slave.Close()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = cmd.Process.Kill(); _ = master.Close() })
	go s.watch()
	return s
}

// watch keeps what is shown, until the last who has the terminal is gone.
func (s *Screen) watch() {
	defer close(s.done)
	buffer := make([]byte, 4096)
	for {
		n, err := s.master.Read(buffer)
		s.mu.Lock()
		s.shown.Write(buffer[:n])
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// Text returns everything that was shown.
func (s *Screen) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// Await waits until something is shown, after what was awaited before.
func (s *Screen) Await(words string) {
	s.Helper()
	deadline := time.After(patience)
	for !s.has(words) {
		select {
		case <-s.more:
		case <-s.done:
			if !s.has(words) {
				s.Fatalf("it ended without %q:\n%s", words, s.Text())
			}
			return
		case <-deadline:
			s.Fatalf("%q was not shown within %v:\n%s", words, patience, s.Text())
		}
	}
}

// has looks for words after those that were found before.
func (s *Screen) has(words string) bool {
	before, _, found := strings.Cut(s.Text()[s.seen:], words)
	if found {
		s.seen += len(before) + len(words)
	}
	return found
}

// Press types keys.
func (s *Screen) Press(keys string) {
	s.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.Fatal(err)
	}
}

// Resize gives the window another size.
func (s *Screen) Resize(rows, cols uint16) {
	s.Helper()
	if err := unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		s.Fatal(err)
	}
}

// settings returns how the terminal treats keys and output.
func (s *Screen) settings() unix.Termios {
	s.Helper()
	t, err := unix.IoctlGetTermios(int(s.master.Fd()), unix.TCGETS)
	if err != nil {
		s.Fatal(err)
	}
	return *t
}

// End waits until the program has ended and nobody has the terminal any more, whose
// settings must be those of the beginning, and returns the exit code.
func (s *Screen) End() int {
	s.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		s.Errorf("the terminal is still in use after %v:\n%s", patience, s.Text())
		_ = s.Cmd.Process.Kill()
	}
	_ = s.Cmd.Wait()
	if now := s.settings(); now != s.begin {
		s.Errorf("the terminal was not restored: %+v, before %+v", now, s.begin)
	}
	return s.Cmd.ProcessState.ExitCode()
}
