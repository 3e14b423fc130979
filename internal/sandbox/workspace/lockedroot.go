package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/hostpath"
)

// What lies in <workspaceRoot>/.atoll, out of every agent's reach.
const (
	privateName   = ".atoll"
	manifestsName = "manifests" // <slug>.json, <slug>.skills.json
	asideName     = "aside"     // <slug>-<time>-<random>/: what Reseed moved away
	trashName     = "trash"     // copies that are being removed
	locksName     = "locks"
)

// lockedRoot is the root of all copies, open, and for writers locked for one copy.
type lockedRoot struct {
	layout  Layout
	root    *os.File // <workspaceRoot>
	private *os.File // <workspaceRoot>/.atoll
	lease   *filelock.Lock
}

// openLockedRoot makes and opens the root and holds the copy of the layout alone.
func openLockedRoot(ctx context.Context, l Layout) (*lockedRoot, error) {
	if err := os.MkdirAll(l.Root, privateDirMode); err != nil {
		return nil, rootError(l, err)
	}
	v, err := openRootForReading(l)
	if err != nil {
		return nil, err
	}
	if err := v.lock(ctx); err != nil {
		v.close()
		return nil, rootError(l, err)
	}
	return v, nil
}

// openRootForReading opens what exists, for readers. fs.ErrNotExist if there is no root.
func openRootForReading(l Layout) (*lockedRoot, error) {
	root, err := hostpath.OpenDir(l.Root)
	if err != nil {
		return nil, rootError(l, err)
	}
	v := &lockedRoot{layout: l, root: root}
	if err := checkPrivate(root); err != nil {
		v.close()
		return nil, errhint.With(rootError(l, err), "Run: chmod o-w "+l.Root)
	}
	v.private, err = openDirAt(root, privateName)
	if ignoreMissing(err) != nil {
		v.close()
		return nil, rootError(l, err)
	}
	return v, nil
}

// checkPrivate refuses a root in which any user of the host could put a
// directory in the place of ours.
func checkPrivate(root *os.File) error {
	info, err := root.Stat()
	if err == nil && info.Mode().Perm()&0o002 != 0 {
		err = errors.New("everybody may write to it")
	}
	return err
}

func (v *lockedRoot) lock(ctx context.Context) error {
	if v.private == nil {
		dir, _, err := makeDir(v.root, privateName, newDir{mode: privateDirMode})
		if err != nil {
			return err
		}
		v.private = dir
	}
	book, err := filelock.Open(filepath.Join(v.layout.Root, privateName, locksName))
	if err != nil {
		return err
	}
	v.lease, err = book.Hold(ctx, v.layout.Slug)
	return err
}

func (v *lockedRoot) close() {
	closeAll(v.root, v.private)
	v.lease.Release()
}

// openPart opens a directory of .atoll, making it if needed.
func (v *lockedRoot) openPart(name string) (*os.File, error) {
	dir, _, err := makeDir(v.private, name, newDir{mode: privateDirMode})
	if err != nil {
		return nil, rootError(v.layout, err)
	}
	return dir, nil
}

// openCopy opens the sandbox's copy; fs.ErrNotExist if there is none.
func (v *lockedRoot) openCopy() (*os.File, error) {
	dir, err := openDirAt(v.root, v.layout.Slug)
	return dir, copyError(v.layout, err)
}

// copyError says what is wrong with the copy, and what to do.
func copyError(l Layout, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("sandbox workspace %s: %w", l.SandboxDir, reason(err))
	switch {
	case errors.Is(err, hostpath.ErrSymlink), errors.Is(err, hostpath.ErrNotDirectory):
		return errhint.With(err, "Move it away; Atoll makes the directory itself.")
	case errors.Is(err, fs.ErrPermission):
		return errhint.With(err, fmt.Sprintf("Run: chmod u+rwx %s (as its owner).", l.SandboxDir))
	}
	return withHint(err, l.Root)
}

func rootError(l Layout, err error) error {
	err = fmt.Errorf("sandbox.workspaceRoot %s: %w", l.Root, reason(err))
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, hostpath.ErrNotDirectory) {
		return errhint.With(err, "Set sandbox.workspaceRoot to a directory.")
	}
	return withHint(err, l.Root)
}

// withHint adds the remedy of errors that can come from any write below dir.
func withHint(err error, dir string) error {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return errhint.With(err, fmt.Sprintf("Free space on the disk of %s, then try again; no half-written file was left.", dir))
	case errors.Is(err, unix.EROFS):
		return errhint.With(err, fmt.Sprintf("%s is on a read-only file system: remount it, or configure another directory.", dir))
	case errors.Is(err, fs.ErrPermission):
		return errhint.With(err, fmt.Sprintf("Let the user that runs Atoll write to %s.", dir))
	}
	return err
}

// reason takes the quoted name, which hostpath puts first, off an error whose
// subject we name ourselves.
func reason(err error) error {
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), `"`) {
		return inner
	}
	return err
}

// isRefusal tells whether hostpath would not touch a file because of what it
// is, or the system because of whose it is.
func isRefusal(err error) bool {
	for _, refusal := range []error{
		hostpath.ErrSymlink, hostpath.ErrHardLink, hostpath.ErrFIFO, hostpath.ErrDevice, hostpath.ErrSocket,
		hostpath.ErrDirectory, hostpath.ErrNotDirectory, hostpath.ErrNotRegular, hostpath.ErrTooLarge,
		hostpath.ErrChanged, hostpath.ErrEscapes, fs.ErrPermission,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}
