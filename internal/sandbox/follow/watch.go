package follow

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// MaxDirectories is how many directories of a base are watched.
const MaxDirectories = 100_000

// ErrTooMany means that a base has more directories than can be watched, by
// MaxDirectories or by the limit of the kernel (fs.inotify.max_user_watches).
var ErrTooMany = errors.New("there are too many directories to watch")

// gitDir is the name of directories that are not followed.
const gitDir = ".git"

// watcher reports the paths below a directory that change.
type watcher struct {
	tree    *overlay.Tree
	base    string
	inotify *fsnotify.Watcher
	watched int
}

func newWatcher(ctx context.Context, tree *overlay.Tree) (*watcher, error) {
	inotify, err := fsnotify.NewBufferedWatcher(4096)
	if err != nil {
		return nil, err
	}
	w := &watcher{tree: tree, base: tree.Base, inotify: inotify}
	if _, err := w.add(ctx, tree.Base); err != nil {
		_ = inotify.Close()
		return nil, err
	}
	return w, nil
}

func (w *watcher) close() { _ = w.inotify.Close() }

// add watches a directory and those below it, and returns what is in them, relative
// to the base. Directories that go meanwhile, or cannot be read, are left out.
func (w *watcher) add(ctx context.Context, dir string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil
		case d.Name() == gitDir:
			return skip(d)
		}
		if path != w.base {
			found = append(found, w.relative(path))
		}
		switch {
		case !d.IsDir():
			return nil
		case w.tree.LeavesEmpty(path):
			return fs.SkipDir
		}
		return w.watch(path)
	})
	return found, err
}

// skip leaves out a directory, or a file that has the same name.
func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func (w *watcher) watch(dir string) error {
	if w.watched == MaxDirectories {
		return fmt.Errorf("%w: more than %d", ErrTooMany, MaxDirectories)
	}
	switch err := w.inotify.Add(dir); {
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: the kernel's limit is fs.inotify.max_user_watches", ErrTooMany)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission), errors.Is(err, unix.ENOTDIR):
		return nil
	case err != nil:
		return err
	}
	w.watched++
	return nil
}

// relative is a path below the base as the overlay names it.
func (w *watcher) relative(path string) string {
	rel, err := filepath.Rel(w.base, path)
	if err != nil {
		return ""
	}
	return rel
}
