// Package apistage measures sandboxes that a program makes through a gateway's API,
// beside the same without a gateway.
package apistage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// stage is a private gateway in a process of its own, and its installation as another
// process sees it.
type stage struct {
	*client.Client
	program string
	dir     string
	env     map[string]string
	app     *app.App
	child   *exec.Cmd
	said    bytes.Buffer
}

// config keeps sandboxes of the machine's own programs.
const config = `{ agents: { defaults: { sandbox: { backend: "linux", docker: { image: "host" } } } } }`

// newStage starts the gateway of a program.
func newStage(ctx context.Context, program string) (_ *stage, err error) {
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
	s.env = map[string]string{"HOME": s.dir, "PATH": os.Getenv("PATH"), "ATOLL_STATE_DIR": filepath.Join(s.dir, "state"), "ATOLL_CONFIG": file}
	s.child = s.command(ctx, "gateway", "--private", "--idle", "1h")
	s.child.Stderr = &s.said
	if err := s.child.Start(); err != nil {
		s.child = nil
		return nil, err
	}
	if s.Client, err = client.New(client.Options{Socket: filepath.Join(s.dir, "state", "gateway.sock")}); err != nil {
		return nil, err
	}
	if err := s.await(ctx); err != nil {
		return nil, err
	}
	s.app, err = app.Open(ctx, provide.LoadOptions{Getenv: func(name string) string { return s.env[name] }, ConfigPath: file})
	return s, err
}

// command is the program with the environment of the stage.
func (s *stage) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.program, args...)
	for name, value := range s.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Dir = s.dir
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

// close ends the gateway and removes the installation.
func (s *stage) close() error {
	var problems []error
	if s.app != nil {
		s.app.Close()
	}
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
