package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tool"
	"github.com/atoll-run/atoll/internal/wire"
)

// hostToolbox are the tools of a session that works on the host: the user asked
// for it. They go through the same guest as in a sandbox, run as this user; file
// tools reach the agent workspace and nothing else.
func (h *Host) hostToolbox(ctx context.Context, who provide.Subject, p *plan.Plan) (*Toolbox, error) {
	if err := os.MkdirAll(p.Agent.Workspace, 0o755); err != nil {
		return nil, &sandbox.ProvisionError{Name: tool.WhereHost, Step: "workspace", Err: err}
	}
	g, err := startHostGuest(h.Paths.AtollState)
	if err != nil {
		return nil, &sandbox.ProvisionError{Name: tool.WhereHost, Step: "guest", Err: err}
	}
	m := machine.New(g.dial, &machine.Options{Log: h.Logger})
	release := func() { _ = m.Close(); g.stop() }
	workspace := p.Agent.Workspace
	files, err := guestfs.New(m, []guestfs.Root{{Path: workspace}})
	if err == nil {
		err = m.Ping(ctx)
	}
	if err != nil {
		release()
		return nil, &sandbox.ProvisionError{Name: tool.WhereHost, Step: "guest", Err: err}
	}
	o := h.toolOptions(p, who)
	o.Isolated = &tool.Location{Name: tool.WhereHost, Machine: m, Files: files, Host: true}
	if inside() {
		o.Isolated.Name, o.Isolated.Host = "sandbox", false
	}
	o.Workdir = workspace
	o.Paths = policy.NewPathMap([]policy.Mount{{Source: workspace, Target: workspace}}, policy.PathOptions{Workdir: workspace, Home: h.Paths.Home})
	o.Environ = h.hostEnviron
	return &Toolbox{Set: tool.New(o), Plan: p, release: release}, nil
}

// hostVariables are those that a command on the host gets of ours.
var hostVariables = []string{"HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TERM", "TZ", "TMPDIR"}

func (h *Host) hostEnviron(passed map[string]string) []string {
	env := map[string]string{}
	for _, name := range hostVariables {
		if value := h.Getenv(name); value != "" {
			env[name] = value
		}
	}
	maps.Copy(env, passed)
	return sandbox.EnvList(env)
}

// hostGuest is a guest that runs as this user, outside of any sandbox, for as
// long as this process uses it.
type hostGuest struct {
	dir  string
	cmd  *exec.Cmd
	done chan struct{}
}

func startHostGuest(state string) (*hostGuest, error) {
	program, err := hostGuestProgram(state)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "atoll-host-")
	if err != nil {
		return nil, err
	}
	g := &hostGuest{dir: dir, done: make(chan struct{})}
	// It ends when it is stopped: a context could only kill it, and not what it started.
	g.cmd = exec.CommandContext(context.Background(), program, "init", "--trust-uid", "--socket", g.socket())
	g.cmd.Env = []string{}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	if err := g.start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return g, nil
}

// start starts the guest so that it ends with us, however we end. To the kernel
// its parent is the thread that started it: that one stays.
func (g *hostGuest) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- g.cmd.Start()
		<-g.done
	}()
	err := <-started
	if err != nil {
		close(g.done)
	}
	return err
}

func (g *hostGuest) socket() string { return filepath.Join(g.dir, "guest.sock") }

// installHostGuest puts the embedded guest where this user can run it.
func installHostGuest(state string) (string, error) {
	content, err := guestbin.For(runtime.GOARCH)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(state, "host-guest")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, guestbin.Hash(content))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	temporary, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(content)
	if err := errors.Join(err, temporary.Chmod(0o500), temporary.Close()); err != nil {
		return "", err
	}
	return path, os.Rename(temporary.Name(), path)
}

// dial connects to the guest that we started and to no other.
func (g *hostGuest) dial(ctx context.Context) (net.Conn, error) {
	conn, err := wire.DialSocket(ctx, g.socket())
	if err != nil {
		return nil, err
	}
	pid, err := wire.PeerPID(conn)
	if err == nil && pid != g.cmd.Process.Pid {
		err = fmt.Errorf("process %d answers for the guest", pid)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// stop ends the guest, which ends what it started.
func (g *hostGuest) stop() {
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	overdue := time.AfterFunc(hostGuestPatience, func() { _ = g.cmd.Process.Kill() })
	_ = g.cmd.Wait()
	overdue.Stop()
	close(g.done)
	_ = os.RemoveAll(g.dir)
}

// hostGuestPatience is how long the guest has to end what it started.
const hostGuestPatience = 5 * time.Second
