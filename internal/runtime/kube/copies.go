package kube

import (
	"context"
	"fmt"
	"path"

	"github.com/atoll-run/atoll/internal/hostpath/archive"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/machine/guestfs/hosttree"
)

// A cluster has no directories of this host. A private copy of a workspace is sent into
// the pod when it starts and fetched when the sandbox is stopped or removed; between, the
// pod has the only one. Symbolic links are copied as links, each name of a hard link as a
// file of its own; special files stay behind on both ways.

// withFiles does something with the files of the copies, over a wire of its own.
func (i *Instance) withFiles(ctx context.Context, m *machine.Machine, do func(*guestfs.Files, copied) error) error {
	copies, err := copiesIn(i.current())
	if err != nil || len(copies) == 0 {
		return err
	}
	roots := make([]guestfs.Root, len(copies))
	for n, c := range copies {
		roots[n] = guestfs.Root{Path: c.dir()}
	}
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

// wire returns a machine of its own for the copies.
func (i *Instance) wire(dial machine.Dialer) *machine.Machine {
	return machine.New(dial, &machine.Options{Log: i.runtime.logger})
}

// dir is the directory inside that a copy is in.
func (c *copied) dir() string {
	if c.File {
		return path.Dir(c.Target)
	}
	return c.Target
}

// copyIn sends the directories of the host into the pod, whose guest keeps those that are
// to be brought back until they were fetched.
func (i *Instance) copyIn(ctx context.Context) error {
	m := i.wire(i.Dial)
	defer m.Close()
	if err := i.sendCopies(ctx, m); err != nil {
		return err
	}
	return i.keepFiles(ctx, m)
}

func (i *Instance) sendCopies(ctx context.Context, m *machine.Machine) error {
	return i.withFiles(ctx, m, func(files *guestfs.Files, c copied) error {
		if c.Volume && i.current().Annotations[noteVolume] == volumeFilled {
			return nil
		}
		from := archive.Source{Path: c.Source, Top: ".", Links: true}
		if c.File {
			from.Top = path.Base(c.Target)
		}
		skipped, err := hosttree.Send(ctx, files, from, c.dir())
		i.note("left out of a sandbox", skipped)
		return err
	})
}

// copyOut fetches the directories that are kept, and puts each in the place of the host's
// when it is whole.
func (i *Instance) copyOut(ctx context.Context) error {
	m := i.wire(i.Dial)
	defer m.Close()
	return i.fetchHome(ctx, m)
}

func (i *Instance) fetchCopies(ctx context.Context, m *machine.Machine) error {
	return i.withFiles(ctx, m, func(files *guestfs.Files, c copied) error {
		if !c.Keep {
			return nil
		}
		most, err := i.runtime.mostBytes(&c)
		if err != nil {
			return err
		}
		skipped, err := hosttree.Update(ctx, files, c.Target, archive.Target{Dir: c.Source, MaxBytes: most, Room: i.runtime.room})
		i.note("not brought back from a sandbox", skipped)
		return tooLarge(err)
	})
}

// note logs names that were not copied.
func (i *Instance) note(what string, names []string) {
	if len(names) > 0 {
		i.runtime.logger.Info(what, "sandbox", i.name, "names", names)
	}
}
