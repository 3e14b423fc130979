package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/hostpath/clone"
)

// forksName is where copies of copies grow; <slug>/, until they are complete.
const forksName = "forks"

// Fork gives one sandbox a copy of another's private copy, with the record of
// what was seeded there. Files share their blocks where the file system can;
// with sharedOnly a file system that cannot is an error (clone.ErrNotShared),
// for a copy that is being changed meanwhile must at least have whole files.
// Under rw there is no copy and nothing happens.
func Fork(ctx context.Context, from, to Layout, sharedOnly bool) error {
	if !from.HasCopy() || !to.HasCopy() {
		return nil
	}
	v, err := openLockedRoot(ctx, to)
	if err != nil {
		return err
	}
	defer v.close()
	source, err := openRootForReading(from)
	if err != nil {
		return err
	}
	defer source.close()
	seeded, err := source.loadManifest()
	if err != nil {
		return err
	}
	files, err := source.openCopy()
	if err != nil {
		return ignoreMissing(err)
	}
	defer closeAll(files)
	if err := v.copyThenRename(ctx, files, clone.Options{SharedOnly: sharedOnly}); err != nil {
		return copyError(to, err)
	}
	seeded.ScopeKey = to.ScopeKey
	return v.saveManifest(seeded)
}

// copyThenRename copies files into a temporary directory, which gets its name when it
// is complete.
func (v *lockedRoot) copyThenRename(ctx context.Context, files *os.File, o clone.Options) error {
	forks, err := v.openPart(forksName)
	if err != nil {
		return err
	}
	defer closeAll(forks)
	slug := v.layout.Slug
	if err := removeTree(ctx, forks, slug); err != nil { // of a crash
		return err
	}
	into, _, err := makeDir(forks, slug, newDir{mode: privateDirMode})
	if err != nil {
		return err
	}
	defer closeAll(into)
	err = clone.Tree(ctx, files, into, o)
	if err == nil {
		err = moveAt(forks, slug, v.root, slug)
	}
	if err != nil {
		return errors.Join(err, removeTree(context.WithoutCancel(ctx), forks, slug))
	}
	return nil
}

// sweepForks removes unfinished copies that crashes left. A copy in progress holds
// the lock of its slug.
func (v *lockedRoot) sweepForks(ctx context.Context) error {
	forks, err := openDirAt(v.private, forksName)
	if err != nil {
		return ignoreMissing(err)
	}
	defer closeAll(forks)
	names, err := nextNames(forks)
	if err != nil {
		return err
	}
	book, err := filelock.Open(filepath.Join(v.layout.Root, privateName, locksName))
	if err != nil {
		return err
	}
	for _, name := range names {
		held, err := book.TryHold(name)
		if errors.Is(err, filelock.ErrHeld) {
			continue
		}
		if err == nil {
			err = removeTree(ctx, forks, name)
			held.Release()
		}
		if err != nil {
			return fmt.Errorf("unfinished copies: %w", err)
		}
	}
	return nil
}
