// Package gatewaychild starts a gateway in a process and an installation of its own, for
// measurements.
package gatewaychild

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
)

// startTimeout is how long a gateway may take until it answers.
const startTimeout = time.Minute

// Gateway is a running gateway, and a client of its socket.
type Gateway struct {
	*client.Client
	Program    string
	Dir        string // of the installation
	ConfigPath string

	env   []string // NAME=value
	child *exec.Cmd
	said  bytes.Buffer
}

// Start starts the gateway of a program with a configuration, with more variables and
// arguments, and waits until it answers.
func Start(ctx context.Context, program, config string, env []string, args ...string) (_ *Gateway, err error) {
	g := &Gateway{Program: program}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.End())
		}
	}()
	if g.Dir, err = os.MkdirTemp("", "atoll"); err != nil {
		return nil, err
	}
	g.ConfigPath = filepath.Join(g.Dir, "atoll.json5")
	if err := os.WriteFile(g.ConfigPath, []byte(config), 0o600); err != nil {
		return nil, err
	}
	g.env = append(env, "HOME="+g.Dir, "PATH="+os.Getenv("PATH"), "ATOLL_STATE_DIR="+g.State(), "ATOLL_CONFIG="+g.ConfigPath)
	child := g.Command(ctx, append([]string{"gateway"}, args...)...)
	child.Stderr = &g.said
	if err := child.Start(); err != nil {
		return nil, err
	}
	g.child = child
	if g.Client, err = client.New(client.Options{Socket: filepath.Join(g.State(), "gateway.sock")}); err != nil {
		return nil, err
	}
	return g, g.await(ctx)
}

// State returns the state directory.
func (g *Gateway) State() string { return filepath.Join(g.Dir, "state") }

// Pid returns the number of the gateway's process.
func (g *Gateway) Pid() int { return g.child.Process.Pid }

// Getenv returns a variable of the gateway's environment.
func (g *Gateway) Getenv(name string) string {
	for _, v := range g.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// Command returns the program with the environment of the gateway.
func (g *Gateway) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, g.Program, args...)
	cmd.Env, cmd.Dir = g.env, g.Dir
	return cmd
}

// await waits until the gateway answers.
func (g *Gateway) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		_, err := g.Health(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the gateway does not answer: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// End ends the gateway and removes its sandboxes and the installation.
func (g *Gateway) End() error {
	var problems []error
	if g.Client != nil {
		g.Close()
	}
	if g.child != nil {
		_ = g.child.Process.Signal(unix.SIGTERM)
		if err := g.child.Wait(); err != nil {
			problems = append(problems, fmt.Errorf("the gateway ended with %w: %s", err, strings.TrimSpace(g.said.String())))
		}
		if out, err := g.Command(context.Background(), "sandbox", "recreate", "--all", "--force", "--discard").CombinedOutput(); err != nil {
			problems = append(problems, fmt.Errorf("remove the sandboxes: %w: %s", err, out))
		}
	}
	return errors.Join(append(problems, os.RemoveAll(g.Dir))...)
}
