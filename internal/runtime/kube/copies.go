package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/atoll-run/atoll/internal/hostpath/archive"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// A cluster has no directories of this host. A private copy of a workspace is sent into
// the pod when it starts and fetched when the sandbox is stopped or removed; between, the
// pod has the only one. Links and special files stay behind on both ways.

// withFiles does something with the files of the copies, over a wire of its own.
func (i *Instance) withFiles(ctx context.Context, do func(*guestfs.Files, copied) error) error {
	copies, err := copiesIn(i.current())
	if err != nil || len(copies) == 0 {
		return err
	}
	roots := make([]guestfs.Root, len(copies))
	for n, c := range copies {
		roots[n] = guestfs.Root{Path: c.Target}
	}
	m := machine.New(i.Dial, &machine.Options{Log: i.runtime.logger})
	defer m.Close()
	files, err := guestfs.New(m, roots)
	if err != nil {
		return err
	}
	for _, c := range copies {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := do(files, c); err != nil {
			return fmt.Errorf("copy of %s: %w", c.Source, err)
		}
	}
	return nil
}

// copyIn sends the directories of the host into the pod.
func (i *Instance) copyIn(ctx context.Context) error {
	return i.withFiles(ctx, func(files *guestfs.Files, c copied) error {
		r, w := io.Pipe()
		packed := make(chan error, 1)
		go func() {
			skipped, err := archive.Pack(ctx, c.Source, ".", w)
			i.note("left out of a sandbox", skipped)
			_ = w.CloseWithError(err)
			packed <- err
		}()
		_, err := files.WriteTar(ctx, c.Target, r, &guestfs.TarOptions{SkipRefused: true})
		_ = r.CloseWithError(err)
		if read := <-packed; read != nil && !errors.Is(read, err) {
			return read
		}
		return err
	})
}

// copyOut fetches the directories that are kept, and puts them in the place of the
// host's when each is whole.
func (i *Instance) copyOut(ctx context.Context) error {
	return i.withFiles(ctx, func(files *guestfs.Files, c copied) error {
		if !c.Keep {
			return nil
		}
		fresh, err := os.MkdirTemp(filepath.Dir(c.Source), ".fetched-*")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(fresh) }()
		if err := i.fetch(ctx, files, c.Target, fresh); err != nil {
			return err
		}
		return replace(c.Source, fresh)
	})
}

// fetch unpacks a directory of the sandbox into one of the host.
func (i *Instance) fetch(ctx context.Context, files *guestfs.Files, from, to string) error {
	r, w := io.Pipe()
	read := make(chan error, 1)
	go func() {
		totals, err := files.ReadTar(ctx, from, w, &guestfs.TarOptions{SkipRefused: true})
		for _, refused := range totals.RefusedNames {
			i.note("not brought back from a sandbox", []string{refused.Path})
		}
		_ = w.CloseWithError(err)
		read <- err
	}()
	err := archive.Unpack(ctx, r, archive.Target{Dir: to, Rename: "."})
	_ = r.CloseWithError(err)
	return errors.Join(err, <-read)
}

// replace puts a directory in the place of another, with its mode and its owner.
func replace(dir, fresh string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if err := os.Chmod(fresh, info.Mode().Perm()); err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		if err := os.Lchown(fresh, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	old := fresh + ".old"
	if err := os.Rename(dir, old); err != nil {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.RemoveAll(old)
}

// note logs names that were not copied.
func (i *Instance) note(what string, names []string) {
	if len(names) > 0 {
		i.runtime.logger.Info(what, "sandbox", i.name, "names", names)
	}
}
