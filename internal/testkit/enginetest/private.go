//go:build linux

package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

const (
	startTimeout = 60 * time.Second // until a daemon must answer
	stopTimeout  = 60 * time.Second // from SIGTERM until a daemon must be gone
	pollInterval = 20 * time.Millisecond
)

// Options shape a Docker daemon of a test's own.
type Options struct {
	LiveRestore bool // containers outlive the daemon
}

// Engine is a Docker daemon, with its own containerd, data and network
// namespace, that one test owns. Its methods are safe for concurrent use, and
// return errors so that goroutines other than the test's may call them.
type Engine struct {
	dir string
	log *os.File

	mu         sync.Mutex
	containerd *exec.Cmd
	dockerd    *exec.Cmd
}

// PrivateDocker starts a Docker daemon that holds TinyImage. It is removed with
// everything it runs when the test ends.
func PrivateDocker(tb testing.TB, opts Options) *Engine {
	tb.Helper()
	need.Root(tb, "it starts a Docker daemon")
	shared(tb, "Docker", dockerHost())
	e, err := newEngine(tb, opts)
	if err != nil {
		tb.Fatalf("no private Docker engine: %v", err)
	}
	return e
}

func newEngine(tb testing.TB, opts Options) (*Engine, error) {
	if err := sweepAbandoned(); err != nil {
		return nil, err
	}
	//nolint:usetesting // sockets need a short path, and the next run must find what a killed one left
	dir, err := os.MkdirTemp(engineDir(), fmt.Sprintf("%s%d-", privatePrefix, os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("%w: run `scripts/test-engine.sh up`", err)
	}
	tb.Cleanup(func() {
		if err := sweep(dir); err != nil {
			tb.Errorf("private Docker engine left something behind: %v", err)
		}
	})
	e := &Engine{dir: dir}
	if e.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, err
	}
	tb.Cleanup(func() { e.finish(tb) })
	steps := []func() error{e.makeNetns, func() error { return e.configure(opts) }, e.startContainerd, e.StartAgain, e.loadTinyImage}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Host returns the daemon's host URL. It stays the same over restarts.
func (e *Engine) Host() string { return "unix://" + e.path("docker.sock") }

// Restart stops the daemon as an init system does, and starts it again.
func (e *Engine) Restart() error {
	return errors.Join(e.Stop(), e.StartAgain())
}

// Stop asks the daemon to stop and waits until it is gone.
func (e *Engine) Stop() error { return e.end(syscall.SIGTERM) }

// Kill ends the daemon as a crash does. Its containerd and containers live on.
func (e *Engine) Kill() error { return e.end(syscall.SIGKILL) }

// StartAgain starts the daemon after Stop or Kill, and returns when it answers.
func (e *Engine) StartAgain() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dockerd != nil {
		return errors.New("dockerd already runs")
	}
	// A killed daemon leaves its pid file; a new one takes it for a running daemon's
	// if the number is in use again.
	if err := os.Remove(e.path("docker.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	cmd := e.command("nsenter", "--net="+netnsPath(e.dir), "dockerd", "--config-file", e.path("daemon.json"))
	if err := cmd.Start(); err != nil {
		return err
	}
	e.dockerd = cmd
	return e.await("dockerd", func(ctx context.Context) error { return ping(ctx, e.Host()) })
}

func (e *Engine) end(signal syscall.Signal) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dockerd == nil {
		return errors.New("dockerd does not run")
	}
	cmd := e.dockerd
	e.dockerd = nil
	if err := cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("dockerd: %w", err)
	}
	overdue := time.AfterFunc(stopTimeout, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // its exit status tells nothing: we ended it
	if !overdue.Stop() {
		return fmt.Errorf("dockerd still ran %v after %v", stopTimeout, signal)
	}
	return nil
}

// finish ends both daemons, and shows their log if the test failed.
func (e *Engine) finish(tb testing.TB) {
	if e.dockerd != nil {
		_ = e.Kill()
	}
	if e.containerd != nil {
		_ = e.containerd.Process.Kill()
		_ = e.containerd.Wait()
	}
	_ = e.log.Close()
	if tb.Failed() {
		tb.Logf("log of the private Docker engine:\n%s", tail(e.log.Name()))
	}
}

// configure writes the daemons' settings. Nothing of the host is read or
// managed: its daemon.json, its containerd, its packet filter.
func (e *Engine) configure(opts Options) error {
	docker, err := json.Marshal(map[string]any{
		"data-root":      e.path("docker"),
		"exec-root":      e.path("docker-exec"),
		"pidfile":        e.path("docker.pid"),
		"hosts":          []string{e.Host()},
		"containerd":     e.path("containerd.sock"),
		"storage-driver": "overlay2",
		"live-restore":   opts.LiveRestore,
		"exec-opts":      []string{"native.cgroupdriver=cgroupfs"},
		"cgroup-parent":  cgroupParent(e.dir),
		"iptables":       false,
		"ip6tables":      false,
	})
	if err != nil {
		return err
	}
	containerd := fmt.Sprintf(`version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = %q
`, e.path("containerd"), e.path("containerd-state"), e.path("containerd.sock"))
	return errors.Join(
		os.WriteFile(e.path("daemon.json"), docker, 0o600),
		os.WriteFile(e.path("containerd.toml"), []byte(containerd), 0o600))
}

func (e *Engine) startContainerd() error {
	e.containerd = e.command("containerd", "--config", e.path("containerd.toml"))
	if err := e.containerd.Start(); err != nil {
		e.containerd = nil
		return err
	}
	return e.await("containerd", func(ctx context.Context) error {
		conn, err := unixDial(ctx, e.path("containerd.sock"))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// loadTinyImage imports the root file system that scripts/test-engine.sh made.
func (e *Engine) loadTinyImage() error {
	rootfs, err := os.Open(filepath.Join(engineDir(), "tiny.tar"))
	if err != nil {
		return fmt.Errorf("%w: run `scripts/test-engine.sh up`", err)
	}
	defer rootfs.Close()
	repo, tag, _ := strings.Cut(TinyImage, ":")
	query := url.Values{"fromSrc": {"-"}, "repo": {repo}, "tag": {tag}, "changes": {"ENV PATH=/bin", `CMD ["/bin/sh"]`}}
	client := unixClient(e.path("docker.sock"))
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	answer, err := call(ctx, client, http.MethodPost, "/images/create?"+query.Encode(), rootfs)
	if err == nil && strings.Contains(string(answer), `"error"`) {
		err = fmt.Errorf("import of %s: %.200s", TinyImage, answer)
	}
	return err
}

// command prepares a daemon: its output goes to the engine's log, and a signal
// to the test's process group does not reach it.
func (e *Engine) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...) //nolint:noctx // a daemon outlives any one call; finish ends it
	cmd.Stdout, cmd.Stderr = e.log, e.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func (e *Engine) await(what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w\n%s", what, err, tail(e.log.Name()))
		case <-time.After(pollInterval):
		}
	}
}

func (e *Engine) path(name string) string { return filepath.Join(e.dir, name) }

// tail returns the end of a log, enough to see why a daemon failed.
func tail(path string) string {
	const most = 4 << 10
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-most):])
}
