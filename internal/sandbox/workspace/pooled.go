package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotEmpty means that a directory that was to be empty is not.
var ErrNotEmpty = errors.New("it is not empty")

// MakeEmpty makes the private copy of a layout as an empty directory with its owner and its
// quota, for a sandbox that waits in a pool. An error that wraps fs.ErrExist means that
// there is one.
func MakeEmpty(ctx context.Context, l Layout, opts Options) (err error) {
	if !l.HasCopy() {
		return errors.New("the sandbox works in a directory of the host itself")
	}
	v, err := openLockedRoot(ctx, l)
	if err != nil {
		return err
	}
	defer v.close()
	user, err := wantedUser(l, opts)
	if err != nil {
		return err
	}
	if err := v.markTemporary(); err != nil {
		return err
	}
	var report Report
	dir, err := v.makeCopy(user, &report)
	if err != nil {
		return err
	}
	defer closeAll(dir)
	if !report.CopyCreated {
		return copyError(l, fs.ErrExist)
	}
	return copyError(l, limitCopy(dir, opts.Quota))
}

// Adopt makes the directory of a pooled layout the private copy of another, which must not
// have one. Processes that have the directory open, or mounted, see the same as before.
func Adopt(ctx context.Context, l, pooled Layout) error {
	v, err := openLockedRoot(ctx, l)
	if err != nil {
		return err
	}
	defer v.close()
	source, err := openRootForReading(pooled)
	if err != nil {
		return err
	}
	defer source.close()
	dir, err := source.openCopy()
	if err != nil {
		return err
	}
	defer closeAll(dir)
	if empty, err := isEmpty(dir); err != nil || !empty {
		return copyError(pooled, errors.Join(err, ErrNotEmpty))
	}
	if err := v.markTemporary(); err != nil {
		return err
	}
	if err := unix.Renameat2(int(source.root.Fd()), pooled.Slug, int(v.root.Fd()), l.Slug, unix.RENAME_NOREPLACE); err != nil {
		return copyError(l, fmt.Errorf("take over %s: %w", pooled.SandboxDir, err))
	}
	return source.unmarkTemporary()
}

// isEmpty reports whether a directory holds nothing.
func isEmpty(dir *os.File) (bool, error) {
	names, err := nextNames(dir)
	return len(names) == 0, err
}
