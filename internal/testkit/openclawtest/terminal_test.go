package openclawtest_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/testkit/terminaltest"
)

// screen is a terminal with a program in it.
type screen struct {
	master *os.File
	mu     sync.Mutex
	text   bytes.Buffer
	seen   int // up to where texts were found
}

// startTerminal runs a program in a terminal until the test ends.
func startTerminal(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	master, slave := terminaltest.Open(t)
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	s := &screen{master: master}
	done := make(chan struct{})
	go func() { defer close(done); s.collect() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it leads its own group
		_ = cmd.Wait()
		_ = master.Close()
		<-done
	})
	return s
}

func (s *screen) collect() {
	data := make([]byte, 64<<10)
	for {
		n, err := s.master.Read(data)
		s.mu.Lock()
		s.text.Write(data[:n])
		s.mu.Unlock()
		if bytes.Contains(data[:n], []byte("\x1b[6n")) { // where is the cursor?
			_, _ = s.master.WriteString("\x1b[1;1R")
		}
		if err != nil {
			return
		}
	}
}

// plain is what was shown, without what moves and colours it.
func (s *screen) plain() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	codes := regexp.MustCompile(`\x1b\[[0-9;?>]*[a-zA-Z]|\x1b\][^\x07]*\x07|\x1b[=>]`)
	return codes.ReplaceAllString(s.text.String(), "")
}

// shows waits until a text was shown after those that were asked for before.
func (s *screen) shows(ctx context.Context, text string) bool {
	for ctx.Err() == nil {
		if at := strings.Index(s.plain()[s.seen:], text); at >= 0 {
			s.seen += at + len(text)
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return false
}

// rests waits until what was shown last of the program's state is that it does nothing.
func (s *screen) rests(ctx context.Context) bool {
	busy := regexp.MustCompile(`\d+s \| connected`)
	for ctx.Err() == nil {
		text, last := s.plain(), 0
		if at := busy.FindAllStringIndex(text, -1); len(at) > 0 {
			last = at[len(at)-1][0]
		}
		if strings.LastIndex(text, "connected | idle") > last {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return false
}

// enter types a line. It ends a moment after its text: what comes in one piece counts
// as pasted.
func (s *screen) enter(t *testing.T, line string) {
	t.Helper()
	for _, text := range []string{line, "\r"} {
		if _, err := s.master.WriteString(text); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func (s *screen) tail() string {
	text := s.plain()
	return text[max(0, len(text)-3000):]
}
