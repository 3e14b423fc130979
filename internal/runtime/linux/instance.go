package linux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Instance is one sandbox.
type Instance struct {
	runtime *Runtime
	name    string
	dir     string

	mu     sync.Mutex
	record *record
	seen   sandbox.Summary
	group  *cgroups.Group // that counts what it uses; nil until it was measured
}

var (
	_ sandbox.Instance    = (*Instance)(nil)
	_ sandbox.MountKeeper = (*Instance)(nil)
	_ sandbox.LimitKeeper = (*Instance)(nil)
)

func (i *Instance) path(name string) string { return filepath.Join(i.dir, name) }

// Open finds a sandbox of ours by name.
func (r *Runtime) Open(_ context.Context, name string) (sandbox.Instance, error) {
	i, err := r.open(name)
	if err != nil {
		return nil, fmt.Errorf("sandbox %q: %w", name, err)
	}
	return i, nil
}

func (r *Runtime) open(name string) (*Instance, error) {
	if !validName(name) {
		return nil, sandbox.ErrNotFound
	}
	i := &Instance{runtime: r, name: name, dir: filepath.Join(r.dir, name)}
	var err error
	if i.record, err = load(i.dir); err != nil {
		return nil, err
	}
	if i.record.Summary.Labels[sandbox.LabelInstallation] != r.options.Installation {
		return nil, sandbox.ErrForeign
	}
	i.updateSeen()
	return i, nil
}

// updateSeen sets the summary that Seen returns. The caller holds the lock, or has
// not shared the instance yet.
func (i *Instance) updateSeen() {
	i.seen = i.record.Summary
	alive := i.record.Run.alive()
	switch {
	case i.record.Run == nil:
		i.seen.State = sandbox.StateCreated
	case alive && i.record.Run.Paused:
		i.seen.State = sandbox.StatePaused
	case alive:
		i.seen.State = sandbox.StateRunning
	default:
		i.seen.State = sandbox.StateStopped
	}
}

// reload reads the record again: another process may have started, stopped or
// removed the sandbox. A later sandbox of the same name is ErrNotFound.
func (i *Instance) reload() error {
	now, err := load(i.dir)
	if err == nil && now.Summary.ID != i.record.Summary.ID {
		err = sandbox.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("sandbox %q: %w", i.name, err)
	}
	i.record = now
	i.updateSeen()
	return nil
}

// Seen returns the summary as of the last reload.
func (i *Instance) Seen() sandbox.Summary {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.seen
}

// State reloads the record and returns the state.
func (i *Instance) State(context.Context) (sandbox.State, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.reload(); err != nil {
		return "", err
	}
	return i.seen.State, nil
}

// Stop sends SIGTERM to the guest, and kills it after grace.
func (i *Instance) Stop(ctx context.Context, grace time.Duration) error {
	return i.end(ctx, "stop", func(held *os.File) error {
		if err := signal(held, unix.SIGTERM); err != nil {
			return err
		}
		patience, cancel := context.WithTimeout(ctx, max(grace, 0))
		defer cancel()
		if await(patience, held) == nil {
			return nil
		}
		return signal(held, unix.SIGKILL)
	})
}

// Kill ends every process of the sandbox: the kernel ends them with their process 1.
func (i *Instance) Kill(ctx context.Context) error {
	return i.end(ctx, "kill", func(held *os.File) error { return signal(held, unix.SIGKILL) })
}

// end calls how, which ends a running sandbox, and waits for the end.
func (i *Instance) end(ctx context.Context, verb string, how func(*os.File) error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	err := i.reload()
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = i.endRun(ctx, how)
	}
	if err != nil {
		return fmt.Errorf("sandbox %q: %s: %w", i.name, verb, err)
	}
	i.updateSeen()
	return nil
}

func (i *Instance) endRun(ctx context.Context, how func(*os.File) error) error {
	held, err := i.record.Run.openPidfd()
	if err != nil {
		return err
	}
	if held == nil {
		return i.settleOverlays()
	}
	defer held.Close()
	if err := i.thaw(); err != nil { // with version 1, not even SIGKILL reaches a frozen process
		return err
	}
	if err := how(held); err != nil {
		return err
	}
	if err := await(ctx, held); err != nil {
		return err
	}
	return i.settleOverlays()
}

// Remove kills the sandbox and removes its files and control group.
func (i *Instance) Remove(ctx context.Context) error {
	if err := i.Kill(ctx); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	now, err := load(i.dir)
	switch {
	case err == nil && now.Summary.ID != i.record.Summary.ID:
		return nil // removed, and another has its name
	case err == nil:
		i.record = now
	}
	if err := i.runtime.discard(ctx, i.name, i.record); err != nil {
		return fmt.Errorf("sandbox %q: remove: %w", i.name, err)
	}
	return nil
}

// discard removes what is stored of a sandbox that does not run. Its record is
// renamed first: from then on there is no sandbox, and after a crash the renamed
// record tells what else to remove. The record is nil if it is not known.
func (r *Runtime) discard(ctx context.Context, name string, rec *record) error {
	dir := filepath.Join(r.dir, name)
	gone := filepath.Join(dir, goneFile)
	if err := os.Rename(filepath.Join(dir, recordFile), gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if rec == nil {
		rec, _ = read(gone)
	}
	if rec == nil && exists(dir) {
		if err := r.endUnrecorded(ctx, name); err != nil {
			return err
		}
	}
	if err := r.options.Roots.Unpin(name); err != nil {
		return err
	}
	if rec != nil {
		if err := r.removeGroup(ctx, rec); err != nil {
			return err
		}
	}
	return removeTree(dir)
}

func (r *Runtime) removeGroup(ctx context.Context, rec *record) error {
	if rec.Groupless {
		return nil
	}
	host, err := r.groups()
	if err != nil {
		return err
	}
	return host.Existing(rec.Summary.ID).Remove(ctx)
}

// Sweep removes what a crash left of a sandbox that is not there, and guests that
// are not the one that the sandbox has now.
func (r *Runtime) Sweep(ctx context.Context, name string) error {
	if !validName(name) {
		return nil
	}
	_, err := load(filepath.Join(r.dir, name))
	if err != nil {
		err = r.discard(ctx, name, nil)
	}
	if err == nil {
		err = r.endUnrecorded(ctx, name) // also those whose directory is gone
	}
	if err != nil {
		return fmt.Errorf("sandbox %q: %w", name, err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// removeTree removes a directory, also if a sandbox has removed its owner's
// permissions in it.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Keeps reports whether the sources of mounts, as they were checked, are what the
// sandbox has mounted.
func (i *Instance) Keeps(mounts []sandbox.Mount) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	mounted := map[string]hostpath.ID{}
	for n, m := range i.record.Spec.Mounts {
		mounted[m.Target] = i.record.Pins[n]
	}
	for _, m := range mounts {
		now, then := hostpath.ID{Device: m.Device, Inode: m.Inode}, mounted[m.Target]
		if now != (hostpath.ID{}) && then != (hostpath.ID{}) && now != then {
			return false
		}
	}
	return true
}

// Unlimited returns which limits of a running sandbox are no longer in force.
func (i *Instance) Unlimited() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if l := i.record.Run; l.alive() {
		return cgroups.Lost(l.Limits, l.PID)
	}
	return nil
}

// List returns every sandbox of this installation.
func (r *Runtime) List(context.Context) ([]sandbox.Summary, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list of sandboxes: %w", err)
	}
	var list []sandbox.Summary
	for _, e := range entries {
		i, err := r.open(e.Name())
		if errors.Is(err, sandbox.ErrNotFound) || errors.Is(err, sandbox.ErrForeign) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("sandbox %q: %w", e.Name(), err)
		}
		list = append(list, i.seen)
	}
	return list, nil
}
