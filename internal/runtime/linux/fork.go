package linux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath/clone"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// forkingRoots can add a layer to a root; rootfs.Store implements it.
type forkingRoots interface {
	Fork(root *rootfs.Root) (*rootfs.Root, error)
	PinRoot(ctx context.Context, owner string, root *rootfs.Root) error
}

var _ sandbox.Forker = (*Runtime)(nil)

// Fork makes the sandbox of spec, stopped, with the files that another has in
// its root. What a stopped one has changed there becomes a layer that both
// stand on, and both go on with empty changes: nothing is copied. Of a running
// one the changes are copied, and only where that means to share blocks: a
// directory that an overlay writes to must not be another's layer.
func (r *Runtime) Fork(ctx context.Context, from string, spec *sandbox.Spec) (sandbox.Instance, error) {
	i, err := r.fork(ctx, from, spec)
	if err != nil {
		return nil, fmt.Errorf("fork of sandbox %q: %w", from, err)
	}
	return i, nil
}

func (r *Runtime) fork(ctx context.Context, from string, spec *sandbox.Spec) (_ *Instance, err error) {
	if err := refuse(spec); err != nil {
		return nil, err
	}
	roots, ok := r.options.Roots.(forkingRoots)
	if !ok {
		return nil, sandbox.ErrUnsupported
	}
	if _, err := r.open(spec.Name); err == nil {
		return nil, fmt.Errorf("sandbox %q: %w", spec.Name, sandbox.ErrExists)
	} else if !errors.Is(err, sandbox.ErrNotFound) {
		return nil, err
	}
	source, err := r.open(from)
	if err != nil {
		return nil, err
	}
	if err := r.discard(ctx, spec.Name, nil); err != nil { // of a creation or removal that did not finish
		return nil, err
	}
	i := &Instance{runtime: r, name: spec.Name, dir: filepath.Join(r.dir, spec.Name), record: r.newRecord(spec)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.discard(context.WithoutCancel(ctx), i.name, i.record))
		}
	}()
	if i.record.Root, err = source.share(ctx, roots, i.name); err != nil {
		return nil, err
	}
	i.record.Summary.ImageID = i.record.Root.ID
	if err := i.makeForkFiles(ctx); err != nil {
		return nil, err
	}
	i.updateSeen()
	return i, nil
}

// share returns a root that holds all of the sandbox's files, pinned for a new
// owner too.
func (i *Instance) share(ctx context.Context, roots forkingRoots, owner string) (*rootfs.Root, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.reload(); err != nil {
		return nil, err
	}
	if len(i.record.Spec.Volumes) > 0 {
		return nil, errhint.With(fmt.Errorf("it has a volume: %w", sandbox.ErrUnsupported), "fork a sandbox without volumes")
	}
	if i.bounded() {
		return nil, errhint.With(fmt.Errorf("its root has a size of its own (docker.storageOpt): %w", sandbox.ErrUnsupported), "remove docker.storageOpt from its agent, and make it anew")
	}
	running := i.record.Run.alive()
	if !running {
		if err := i.seal(); err != nil { // of a fork that did not finish
			return nil, err
		}
	}
	changed, err := i.hasChanges()
	if err != nil {
		return nil, err
	}
	if !changed {
		return i.record.Root, roots.PinRoot(ctx, owner, i.record.Root)
	}
	forked, err := roots.Fork(i.record.Root)
	if err != nil {
		return nil, err
	}
	if err := roots.PinRoot(ctx, owner, forked); err != nil {
		return nil, err
	}
	if running {
		return forked, i.copyChanges(ctx, forked.Layers[0])
	}
	// First the pin, then the intent, then the layer: the next start finishes what
	// was interrupted.
	if err := roots.PinRoot(ctx, i.name, forked); err != nil {
		return nil, err
	}
	i.record.Root, i.record.Sealing = forked, forked.Layers[0]
	if err := i.record.save(i.dir); err != nil {
		return nil, err
	}
	return forked, i.seal()
}

// hasChanges reports whether anything was ever changed in the root.
func (i *Instance) hasChanges() (bool, error) {
	upper, err := os.Open(filepath.Join(i.path(changesDir), "upper"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	defer upper.Close()
	names, err := upper.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return len(names) > 0, err
}

// seal turns the changes so far into a layer, if a fork has begun that, and makes
// empty directories for new changes.
func (i *Instance) seal() error {
	layer := i.record.Sealing
	if layer == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(layer), 0o700); err != nil {
		return err
	}
	if _, err := os.Lstat(layer); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(filepath.Join(i.path(changesDir), "upper"), layer); err != nil {
			return fmt.Errorf("changes of the root: %w", err)
		}
	} else if err != nil {
		return err
	}
	if err := removeTree(filepath.Join(i.path(changesDir), "work")); err != nil {
		return err
	}
	if err := i.makeChanges(); err != nil {
		return err
	}
	i.record.Sealing = ""
	return i.record.save(i.dir)
}

// copyChanges makes a layer of the changes of a running sandbox.
func (i *Instance) copyChanges(ctx context.Context, layer string) error {
	upper, err := os.Open(filepath.Join(i.path(changesDir), "upper"))
	if err != nil {
		return err
	}
	defer upper.Close()
	if err := os.MkdirAll(layer, 0o755); err != nil {
		return err
	}
	into, err := os.Open(layer)
	if err != nil {
		return err
	}
	defer into.Close()
	if err := clone.CanShare(into); err != nil {
		return runningRefusal(i.name, err)
	}
	if err := clone.Tree(ctx, upper, into, clone.Options{SharedOnly: true, Overlay: true}); err != nil {
		return runningRefusal(i.name, err)
	}
	return nil
}

func runningRefusal(name string, err error) error {
	if !errors.Is(err, clone.ErrNotShared) {
		return err
	}
	return errhint.With(fmt.Errorf("it is running, and %w: %w", err, sandbox.ErrUnsupported),
		"stop it first, with --stop, or keep the state directory on btrfs or xfs")
}

// makeForkFiles makes the new sandbox's own directories; the record comes last.
func (i *Instance) makeForkFiles(ctx context.Context) error {
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return err
	}
	if err := errors.Join(i.makeChanges(), i.makeStorage(ctx)); err != nil {
		return err
	}
	if err := i.pinMounts(); err != nil {
		return err
	}
	return i.record.save(i.dir)
}
