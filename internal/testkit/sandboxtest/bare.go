package sandboxtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/guestbuild"
)

// Bare is a runtime without walls: a sandbox is the real guest as process 1 of
// a pid namespace, on the host's own files. It exists so that the Manager and
// the suite can be tested without an engine, and is for tests only.
type Bare struct {
	dir   string // one directory per sandbox
	guest string // path of the guest program
}

// NewBare returns the bare runtime of a state directory.
func NewBare(t *testing.T, stateDir string) *Bare {
	t.Helper()
	return &Bare{dir: filepath.Join(stateDir, "bare"), guest: guestbuild.Build(t)}
}

// BareImage is the only image that a Bare has.
const BareImage = "bare"

// record is what a bare sandbox leaves on disk.
type record struct {
	Summary sandbox.Summary
	PID     int // of the process that holds the namespace; 0 if never started
}

type bareInstance struct {
	dir, guest string
	mu         sync.Mutex
	record     record // guarded by mu
}

// Check finds no gaps but overlays: a Bare promises nothing else.
func (b *Bare) Check(_ context.Context, spec *sandbox.Spec) (gaps []sandbox.Gap) {
	for _, m := range spec.Mounts {
		if m.Overlay != nil {
			gaps = append(gaps, sandbox.Gap{Field: "overlay.kind", Reason: "nothing is mounted", Remedy: "use a runtime with walls"})
		}
	}
	return gaps
}

// Create makes the sandbox's directory. The record is written last and by
// rename, so that a directory without one is a creation that did not finish.
func (b *Bare) Create(ctx context.Context, spec *sandbox.Spec) (sandbox.Instance, error) {
	if len(b.Check(ctx, spec)) > 0 {
		return nil, fmt.Errorf("sandbox %q: %w", spec.Name, sandbox.ErrUnsupported)
	}
	if spec.Image != BareImage {
		return nil, fmt.Errorf("image %q: %w", spec.Image, sandbox.ErrNoImage)
	}
	dir := filepath.Join(b.dir, spec.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "record.json")); err == nil {
		return nil, fmt.Errorf("sandbox %q: %w", spec.Name, sandbox.ErrExists)
	}
	now := time.Now()
	inst := &bareInstance{dir: dir, guest: b.guest, record: record{Summary: sandbox.Summary{
		Name: spec.Name, ID: rand.Text(), State: sandbox.StateCreated, Image: spec.Image, CreatedAt: now,
		Labels: sandbox.Labels(spec, b.dir, now),
	}}}
	return inst, inst.save()
}

// Open reads the record of an earlier process.
func (b *Bare) Open(_ context.Context, name string) (sandbox.Instance, error) {
	inst := &bareInstance{dir: filepath.Join(b.dir, name), guest: b.guest}
	data, err := os.ReadFile(filepath.Join(inst.dir, "record.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("sandbox %q: %w", name, sandbox.ErrNotFound)
	} else if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &inst.record); err != nil {
		return nil, err
	}
	inst.look()
	return inst, nil
}

// List opens every record.
func (b *Bare) List(ctx context.Context) ([]sandbox.Summary, error) {
	names, err := os.ReadDir(b.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []sandbox.Summary
	for _, n := range names {
		inst, err := b.Open(ctx, n.Name())
		if errors.Is(err, sandbox.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		list = append(list, inst.Seen())
	}
	return list, nil
}

func (i *bareInstance) save() error {
	data, err := json.Marshal(&i.record)
	if err != nil {
		return err
	}
	temporary := filepath.Join(i.dir, "record.tmp")
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(i.dir, "record.json"))
}

// look updates the state from the process table, and returns the record.
func (i *bareInstance) look() record {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.record.PID == 0:
		i.record.Summary.State = sandbox.StateCreated
	case isAlive(i.record.PID):
		i.record.Summary.State = sandbox.StateRunning
	default:
		i.record.Summary.State = sandbox.StateStopped
	}
	return i.record
}

// isAlive reports whether pid runs; a zombie does not.
func isAlive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest != "" && rest[0] != 'Z' && rest[0] != 'X'
}

// childrenOf finds the guest below the process that made its namespace. It is
// killed first: its parent ends only when everything in the namespace has.
func childrenOf(pid int) []int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var children []int
	for field := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			children = append(children, child)
		}
	}
	return children
}

func (i *bareInstance) Seen() sandbox.Summary {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.record.Summary
}

func (i *bareInstance) Start(context.Context) error {
	if i.look().Summary.State == sandbox.StateRunning {
		return nil
	}
	// The sandbox outlives this process, so it must not be bound to a context.
	args := []string{"--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL", "--", i.guest, "init", "--socket", filepath.Join(i.dir, "guest.sock")}
	if os.Geteuid() != 0 {
		args = append([]string{"--user", "--map-current-user"}, args...)
	}
	cmd := exec.Command("unshare", args...) //nolint:noctx // see above
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.record.PID = cmd.Process.Pid
	i.record.Summary.State = sandbox.StateRunning
	return i.save()
}

func (i *bareInstance) Dial(ctx context.Context) (net.Conn, error) {
	socket := filepath.Join(i.dir, "guest.sock")
	for {
		if now := i.look().Summary; now.State != sandbox.StateRunning {
			return nil, fmt.Errorf("sandbox %q: %w", now.Name, sandbox.ErrNotRunning)
		}
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		time.Sleep(time.Millisecond)
	}
}

func (i *bareInstance) State(context.Context) (sandbox.State, error) {
	now := i.look().Summary
	if _, err := os.Stat(i.dir); err != nil {
		return "", fmt.Errorf("sandbox %q: %w", now.Name, sandbox.ErrNotFound)
	}
	return now.State, nil
}

func (i *bareInstance) Stop(ctx context.Context, _ time.Duration) error { return i.Kill(ctx) }

func (i *bareInstance) Kill(ctx context.Context) error {
	holder := i.look().PID
	if holder == 0 {
		return nil
	}
	targets := childrenOf(holder)
	if len(targets) == 0 {
		targets = []int{holder}
	}
	for _, pid := range targets {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for isAlive(holder) {
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	i.look()
	return nil
}

func (i *bareInstance) Remove(ctx context.Context) error {
	if err := i.Kill(ctx); err != nil {
		return err
	}
	return os.RemoveAll(i.dir)
}
