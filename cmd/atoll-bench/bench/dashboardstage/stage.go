// Package dashboardstage measures the gateway's web pages in a real browser: what they
// load, what they cost while they are live, and how soon they show what happens; and what
// tracing costs a run.
package dashboardstage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/client"
)

// config has sandboxes of the machine's own programs, a provider that nothing asks, a run
// that says the time and one that ends at once.
const config = `{
  agents: { defaults: { model: "p/m", sandbox: { backend: "linux", docker: { image: "host" } } } },
  llm: { providers: { p: { url: "http://127.0.0.1:9", keys: [{ env: "NO_KEY" }], models: ["m"] } } },
  runs: { variants: {
    clock: { name: "Clock", argv: ["/bin/sh", "-c", "i=0; while [ $i -lt 150 ]; do i=$((i+1)); echo at=$(date +%s%3N) >&2; sleep 0.1; done; echo over"], read: "text" },
    short: { name: "Short", argv: ["/bin/sh", "-c", "echo done"], read: "text" },
  } },
}`

// stage is a gateway in a process of its own, on an address.
type stage struct {
	*client.Client
	program string
	dir     string
	address string
	env     []string
	child   *exec.Cmd
	said    bytes.Buffer
}

// newStage starts the gateway of a program, with more of its environment.
func newStage(ctx context.Context, program string, env ...string) (_ *stage, err error) {
	s := &stage{program: program}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "atoll"); err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "atoll.json5")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	if s.address, err = freeAddress(ctx); err != nil {
		return nil, err
	}
	s.env = append(env, "HOME="+s.dir, "PATH="+os.Getenv("PATH"), "ATOLL_STATE_DIR="+s.state(), "ATOLL_CONFIG="+file, "NO_KEY=none")
	s.child = s.command(ctx, "gateway", "--listen", s.address)
	s.child.Stderr = &s.said
	if err := s.child.Start(); err != nil {
		s.child = nil
		return nil, err
	}
	if s.Client, err = client.New(client.Options{Socket: filepath.Join(s.state(), "gateway.sock")}); err != nil {
		return nil, err
	}
	return s, s.await(ctx)
}

func (s *stage) state() string { return filepath.Join(s.dir, "state") }

// command is the program with the environment of the stage.
func (s *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Env, cmd.Dir = s.env, s.dir
	return cmd
}

// await waits until the gateway answers.
func (s *stage) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := s.Health(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the gateway does not answer: %w: %s", err, s.said.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// cpu returns the CPU time of the gateway's process.
func (s *stage) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.child.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// close ends the gateway and removes the installation.
func (s *stage) close() error {
	var problems []error
	if s.Client != nil {
		s.Close()
	}
	if s.child != nil {
		_ = s.child.Process.Signal(unix.SIGTERM)
		if err := s.child.Wait(); err != nil {
			problems = append(problems, fmt.Errorf("the gateway ended with %w: %s", err, strings.TrimSpace(s.said.String())))
		}
		if out, err := s.command(context.Background(), "sandbox", "recreate", "--all", "--force", "--discard").CombinedOutput(); err != nil {
			problems = append(problems, fmt.Errorf("remove the sandboxes: %w: %s", err, out))
		}
	}
	return errors.Join(append(problems, os.RemoveAll(s.dir))...)
}

// freeAddress returns an address of this machine that nothing listens on.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
