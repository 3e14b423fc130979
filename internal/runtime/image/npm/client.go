package npm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

// ErrMissing means that this machine has no npm.
var ErrMissing = errors.New("npm is not installed")

// Client asks the npm of this machine.
type Client struct {
	Program string // "" is npm
}

// Available returns ErrMissing if there is no npm to ask.
func (c *Client) Available() error {
	if _, err := exec.LookPath(c.program()); err != nil {
		return errhint.With(ErrMissing, "install it (Debian package: npm)")
	}
	return nil
}

func (c *Client) program() string {
	if c.Program == "" {
		return "npm"
	}
	return c.Program
}

// Resolve returns the tree that installs the packages wanted, such as
// "@openai/codex@latest". dir is an empty directory to work in.
func (c *Client) Resolve(ctx context.Context, dir string, on Platform, wanted []string) ([]Package, error) {
	manifest := filepath.Join(dir, "package.json")
	if err := os.WriteFile(manifest, []byte(`{"private":true}`+"\n"), 0o600); err != nil {
		return nil, err
	}
	if err := c.run(ctx, dir, append([]string{"install", "--package-lock-only", "--save-exact", "--"}, wanted...)...); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "package-lock.json")
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxTree {
		return nil, fmt.Errorf("package-lock.json has %d bytes, more than %d", info.Size(), maxTree)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseLock(data, on)
}

// grace is how long npm may take to end after it was told to.
const grace = 5 * time.Second

// run runs npm without the scripts of any package.
func (c *Client) run(ctx context.Context, dir string, args ...string) error {
	global := []string{"--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--no-update-notifier", "--loglevel=error"}
	cmd := exec.CommandContext(ctx, c.program(), append(append([]string{args[0]}, global...), args[1:]...)...)
	said := &tailbuf.Writer{Most: saidSize}
	cmd.Dir, cmd.Stderr = dir, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, exec.ErrNotFound) {
		return c.Available()
	}
	if err != nil {
		return explain(said.Bytes(), err)
	}
	return nil
}

// saidSize is how much of npm's messages is kept.
const saidSize = 8 << 10

// explain makes an error of npm's last messages.
func explain(said []byte, err error) error {
	lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
	var kept []string
	for _, line := range lines {
		text := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(string(line), "npm error"), "npm ERR!"))
		if text != "" && !strings.HasPrefix(text, "A complete log of this run") && !strings.HasPrefix(text, "npm warn") && len(kept) < 4 {
			kept = append(kept, text)
		}
	}
	text := strings.Join(kept, " · ")
	if text == "" {
		text = err.Error()
	}
	failed := fmt.Errorf("npm: %s", text)
	for _, known := range []struct{ word, hint string }{
		{"ENOSPC", "free space on the disk and run the same command again; what was fetched is kept"},
		{"ETARGET", "there is no such version; `npm view PACKAGE versions` lists them"},
		{"E404", "the registry does not have that package; `npm config get registry` shows which registry is asked"},
		{"E401", "log in to the registry with `npm login`, then run the same command again"},
		{"E403", "log in to the registry with `npm login`, then run the same command again"},
		{"ENOTCACHED", "let this machine reach the registry, then run the same command again"},
	} {
		if strings.Contains(string(said), known.word) {
			return errhint.With(failed, known.hint)
		}
	}
	return errhint.With(failed, "check that this machine reaches the registry (`npm ping`), then run the same command again; what was fetched is kept")
}
