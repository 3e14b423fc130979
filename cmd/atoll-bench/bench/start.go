package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/bwrapfloor"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/runtime/seccomp"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/wire"
)

// How often each side runs, and what is claimed.
const (
	startRounds  = 40
	engineEvery  = 8   // rounds between two starts on the engine, which is slow
	startFloor   = 1.5 // times the floor, at most
	startImage   = 1.3 // times a start from the host's programs, at most
	startPeer    = 3   // times bwrap with nothing in it, at most
	startEngine  = 20  // times quicker than Docker, at least
	runEngine    = 10  // the same of whole commands
	startTimeout = 2 * time.Minute
)

// startStage is an installation of its own that makes sandboxes.
type startStage struct {
	options Options
	dir     string
	app     *app.App
	guest   string
	filter  string         // our own, as bwrap takes it
	rest    []string       // for bwrap: what a sandbox has besides
	limits  sandbox.Limits // of every sandbox here, and of the peers that have limits
	n       int
}

// startBench measures how long it takes until a sandbox that does not exist yet
// has carried out its first command.
func startBench(ctx context.Context, o Options) (*Report, error) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		return nil, errhint.With(errors.New("the peer of this benchmark, bwrap, is missing"), "install bubblewrap")
	}
	s, err := newStartStage(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r := &Report{Bench: "start"}
	for _, part := range []func(context.Context, *Report) error{s.sides, s.forks, s.alive, s.crowd} {
		if err := part(ctx, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func newStartStage(ctx context.Context, o Options) (_ *startStage, err error) {
	s := &startStage{options: o}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "atoll"); err != nil {
		return nil, err
	}
	if s.app, err = app.Open(ctx, provide.LoadOptions{Getenv: s.getenv, ConfigPath: o.Config}); err != nil {
		return nil, err
	}
	program, err := guestbin.For(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	filter, err := seccomp.Compiled(runtime.GOARCH, seccomp.PlainModes)
	if err != nil {
		return nil, err
	}
	p, err := s.app.Plan(s.who("linux", ""))
	if err != nil {
		return nil, err
	}
	s.limits = p.Spec.Limits.WithDefaults(p.Spec.Limits.Defaults)
	s.guest, s.filter, s.rest = filepath.Join(s.dir, "guest"), filepath.Join(s.dir, "filter"), bwrapfloor.Rest()
	return s, errors.Join(os.WriteFile(s.guest, program, 0o755), os.WriteFile(s.filter, filter, 0o600))
}

func (s *startStage) getenv(name string) string {
	if name == "ATOLL_STATE_DIR" {
		return filepath.Join(s.dir, "state")
	}
	return s.options.Getenv(name)
}

// who is a new session.
func (s *startStage) who(backend, image string) provide.Subject {
	s.n++
	key := fmt.Sprintf("agent:main:bench-%d", s.n)
	return provide.Subject{SessionKey: key, Adjust: func(agent *config.Agent) {
		agent.Sandbox.Scope, agent.Sandbox.Backend = config.ScopeSession, backend
		agent.Sandbox.Docker.ContainerPrefix = "bench-" + filepath.Base(s.dir) + "-"
		if image != "" {
			agent.Sandbox.Docker.Image = image
			agent.Origins["sandbox.docker.image"] = config.Origin{Source: "call"}
		}
	}}
}

// ours makes a sandbox, carries out a command and removes the sandbox; only the
// removal is not measured.
func (s *startStage) ours(ctx context.Context, backend, image string) (time.Duration, error) {
	who := s.who(backend, image)
	start := time.Now()
	session, err := s.app.Provide(ctx, who, provide.Options{})
	if err != nil {
		return 0, err
	}
	_, err = session.Machine.Exec(ctx, &machine.Command{Argv: []string{truth}})
	took := time.Since(start)
	session.Release()
	return took, errors.Join(err, s.app.Discard(ctx, session.Plan))
}

// floor makes a place with bwrap, starts the guest in it and carries out a
// command over its wire: the same kinds of system calls, no books kept. Rest is
// what the place has besides.
func (s *startStage) floor(ctx context.Context, rest []string) (time.Duration, error) {
	dir, err := os.MkdirTemp(s.dir, "floor")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	filter, err := os.Open(s.filter)
	if err != nil {
		return 0, err
	}
	defer filter.Close()
	start := time.Now()
	root := append(bwrapRoot(), "--ro-bind", s.guest, "/guest", "--bind", dir, "/wire", "--cap-drop", "ALL")
	cmd := exec.CommandContext(ctx, "bwrap", append(append(root, rest...), "/guest", "init", "--trust-uid", "--socket", "/wire/guest.sock")...)
	cmd.ExtraFiles = []*os.File{filter}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	m := machine.New(func(ctx context.Context) (net.Conn, error) { return dialSoon(ctx, filepath.Join(dir, "guest.sock")) }, nil)
	_, err = m.Exec(ctx, &machine.Command{Argv: []string{truth}})
	took := time.Since(start)
	_ = m.Close()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return took, err
}

func bwrapRoot() []string {
	root := []string{"--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if target, err := os.Readlink("/" + name); err == nil {
			root = append(root, "--symlink", target, "/"+name)
		} else if _, err := os.Stat("/" + name); err == nil {
			root = append(root, "--ro-bind", "/"+name, "/"+name)
		}
	}
	return root
}

// dialSoon waits for a guest that is starting.
func dialSoon(ctx context.Context, socket string) (net.Conn, error) {
	for {
		conn, err := wire.DialSocket(ctx, socket)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// command measures a program from start to end.
func (s *startStage) command(ctx context.Context, argv ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "ATOLL_STATE_DIR="+filepath.Join(s.dir, "runs"))
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", argv[0], err, out)
	}
	return time.Since(start), nil
}

func (s *startStage) close() {
	if s.app != nil {
		s.app.Close()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}
