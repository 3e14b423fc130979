package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
)

const (
	// KeepDiscarded is how long a discarded overlay is kept.
	KeepDiscarded = 7 * 24 * time.Hour

	discardedPrefix = ".discarded-"
	discardedTime   = "20060102T150405.000000000"
	buildingSuffix  = ".new"
)

// Reset discards all changes: the overlay is moved aside for KeepDiscarded, and
// the next Prepare makes a new one. Nothing may be mounted from it.
func (t *Tree) Reset(ctx context.Context) error {
	parent := filepath.Dir(t.Dir)
	release, err := holdDir(ctx, parent)
	if err != nil {
		return err
	}
	defer release()
	aside := filepath.Join(parent, discardedPrefix+time.Now().UTC().Format(discardedTime)+"-"+filepath.Base(t.Dir))
	if err := os.Rename(t.Dir, aside); err != nil {
		return fmt.Errorf("discard the overlay of %q: %w", t.Base, err)
	}
	t.forgetNotes()
	return removeDiscarded(parent, time.Now())
}

// RemoveAll removes the directory that holds the overlays of one sandbox, with
// all changes. Nothing may be mounted from it.
func RemoveAll(ctx context.Context, dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	release, err := holdDir(ctx, dir)
	if err != nil {
		return err
	}
	defer release()
	return removeTree(dir)
}

// holdDir takes the lock of the directory that holds the overlays of one sandbox.
func holdDir(ctx context.Context, dir string) (release func(), err error) {
	locks, err := filelock.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	held, err := locks.Hold(ctx, "prepare")
	if err != nil {
		return nil, err
	}
	return held.Release, nil
}

// removeDiscarded removes what was discarded long enough ago.
func removeDiscarded(parent string, now time.Time) error {
	entries, err := os.ReadDir(parent)
	for _, e := range entries {
		text, is := strings.CutPrefix(e.Name(), discardedPrefix)
		text, _, _ = strings.Cut(text, "-")
		if at, bad := time.Parse(discardedTime, text); is && bad == nil && now.Sub(at) > KeepDiscarded {
			err = errors.Join(err, removeTree(filepath.Join(parent, e.Name())))
		}
	}
	return err
}

// isUnfinished reports whether a directory is no overlay in use: one that was
// discarded, or was being made.
func isUnfinished(dir string) bool {
	name := filepath.Base(dir)
	return strings.HasPrefix(name, discardedPrefix) || strings.HasSuffix(name, buildingSuffix)
}
