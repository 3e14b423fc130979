package overlay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/hostpath/clone"
)

// Choice is the kind of an overlay, why it was chosen and what it cannot do.
type Choice struct {
	Kind  Kind
	Marks Marks
	Why   string
	Costs []string
}

// Choose returns the kind that Prepare would choose, or has chosen. It changes
// nothing.
func Choose(ctx context.Context, r Request) (Choice, error) {
	if t, err := Load(r.Dir); err == nil {
		return Choice{t.Kind, t.Marks, t.Why, t.Costs}, nil
	} else if !errors.Is(err, ErrNone) {
		return Choice{}, err
	}
	facts, err := checkBase(r)
	if err != nil {
		return Choice{}, err
	}
	return choose(ctx, r, choiceFacts{facts, smallBase()})
}

// choiceFacts are what a choice depends on beside the request.
type choiceFacts struct {
	base  hostpath.Facts
	small Limit // up to where a copy is preferred to a mount
}

// smallBase returns up to where a copy is preferred to a mount.
func smallBase() Limit { return Limit{Bytes: 64 << 20, Files: 5_000} }

func choose(ctx context.Context, r Request, f choiceFacts) (Choice, error) {
	cannot, err := kernelCannot(r)
	if err != nil {
		return Choice{}, err
	}
	switch {
	case r.Want == Kernel && cannot != "":
		return Choice{}, errhint.With(fmt.Errorf("overlay.kind is %q, but %s", Kernel, cannot), `Set overlay.kind to "auto" or "copy".`)
	case r.Want == Kernel:
		return kernelChoice(r, `overlay.kind is "kernel"`), nil
	case r.Want == Copy:
		return copyChoice(ctx, r, `overlay.kind is "copy"`)
	case canShare(r, f.base):
		return copyChoice(ctx, r, "the file system shares blocks between the base and its copy")
	}
	small, err := fits(ctx, r, f.small)
	if err != nil {
		return Choice{}, err
	}
	switch {
	case small:
		return copyChoice(ctx, r, fmt.Sprintf("the base has at most %d files and %d MiB", f.small.Files, f.small.Bytes>>20))
	case cannot == "":
		return kernelChoice(r, "the kernel can mount an overlay, and the base is too large to copy quickly"), nil
	}
	return copyChoice(ctx, r, cannot)
}

func kernelChoice(r Request, why string) Choice {
	c := Choice{Kind: Kernel, Marks: r.Kernel.Marks, Why: why}
	if r.Kernel.Marks == MarksUser {
		c.Costs = append(c.Costs, "directories of the base cannot be renamed inside (EXDEV); mv copies them, git mv of a directory fails",
			"files of other owners cannot be changed inside (EOVERFLOW)")
	}
	c.Costs = append(c.Costs, "the first change of a file copies all of it",
		"files that the host saves by renaming are seen inside after sync refresh")
	return c
}

func copyChoice(ctx context.Context, r Request, why string) (Choice, error) {
	limit := r.CopyLimit.orDefault()
	ok, err := fits(ctx, r, limit)
	if err != nil {
		return Choice{}, err
	}
	if !ok {
		return Choice{}, errhint.With(fmt.Errorf("the base %q has more than %d files or %d MiB and would have to be copied: %s", r.Base, limit.Files, limit.Bytes>>20, why),
			"Raise overlay.copyLimit, or choose a smaller directory.")
	}
	c := Choice{Kind: Copy, Why: why, Costs: []string{"the base is copied once", "reading the changes takes longer with the number of files in the base"}}
	if len(r.Empty) > 0 {
		c.Costs = append(c.Costs, strings.Join(r.Empty, ", ")+": such directories are empty inside at the start, and what is made in them stays inside")
	}
	return c, nil
}

// fits reports whether what a copy would have of a base is within a limit. It looks at
// no more than that.
func fits(ctx context.Context, r Request, limit Limit) (bool, error) {
	root, err := hostpath.OpenDir(r.Base)
	if err != nil {
		return false, err
	}
	defer root.Close()
	s := scan{ctx: ctx, out: newManifestWriter(io.Discard), limit: limit, empty: r.Empty}
	err = s.run(root)
	if errors.Is(err, errLimit) || errors.Is(err, errTooMany) {
		return false, nil
	}
	return err == nil, err
}

// canShare reports whether a copy of the base costs no blocks.
func canShare(r Request, base hostpath.Facts) bool {
	dir, err := existingParent(r.Dir)
	if err != nil {
		return false
	}
	defer dir.Close()
	var st unix.Stat_t
	return unix.Fstat(int(dir.Fd()), &st) == nil && st.Dev == base.Device && clone.CanShare(dir) == nil
}

// existingParent opens the deepest directory of a path that exists.
func existingParent(path string) (*os.File, error) {
	for {
		dir, err := hostpath.OpenDir(path)
		if !errors.Is(err, unix.ENOENT) || path == filepath.Dir(path) {
			return dir, err
		}
		path = filepath.Dir(path)
	}
}

// kernelCannot returns why the kernel cannot mount an overlay, or "".
func kernelCannot(r Request) (string, error) {
	if r.Kernel.Marks == "" {
		return r.Kernel.Why, nil
	}
	dir, err := existingParent(r.Dir)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil {
		return "", err
	}
	if name := foreign(int64(st.Type)); name != "" {
		return "the state directory is on " + name + ", where the kernel keeps no overlay", nil
	}
	return "", nil
}

// foreign names a file system whose times and inodes are not this kernel's, or not
// kept: it cannot hold an upper directory, and only times of content, sizes and
// modes tell whether a file of it changed.
func foreign(magic int64) string {
	return map[int64]string{
		unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
		unix.NFS_SUPER_MAGIC:       "NFS", unix.V9FS_MAGIC: "9p", unix.FUSE_SUPER_MAGIC: "FUSE", // virtiofs is a FUSE
		unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "SMB",
		unix.CEPH_SUPER_MAGIC: "Ceph", unix.AFS_SUPER_MAGIC: "AFS", unix.CODA_SUPER_MAGIC: "Coda",
	}[magic]
}
