package hosttree

import (
	"context"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath/archive"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// Update fetches a directory of a sandbox, with its links, and puts it in the place of to.Dir
// when it is whole: at every moment that is the old one or the new one. The limits of to
// hold. What was left out is returned.
func Update(ctx context.Context, files *guestfs.Files, inside string, to archive.Target) (skipped []string, err error) {
	dir := to.Dir
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".fetched-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(fresh) }() // the old one, if all went well
	to.Dir, to.Rename, to.Links = fresh, ".", true
	skipped, err = Fetch(ctx, files, inside, to)
	if err != nil {
		return nil, err
	}
	return skipped, exchange(dir, fresh)
}

// exchange swaps two directories. The new one gets the mode and the owner of dir.
func exchange(dir, fresh string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		if err := os.Lchown(fresh, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	if err := os.Chmod(fresh, info.Mode().Perm()); err != nil {
		return err
	}
	if err := unix.Renameat2(unix.AT_FDCWD, fresh, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE); err != nil {
		return &os.LinkError{Op: "exchange", Old: fresh, New: dir, Err: err}
	}
	return nil
}
