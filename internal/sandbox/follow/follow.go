package follow

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

const (
	// settle is how long a path must be quiet before it is handed over: editors and
	// git change a file in several steps.
	settle = 150 * time.Millisecond
	// longestWait is when paths are handed over although others still change.
	longestWait = time.Second
)

// Follower hands edits of one base to the guest that has its overlay.
type Follower struct {
	Tree  *overlay.Tree
	Files Files
	Hide  overlay.HideFunc // as in the request of the overlay; may be nil
	Log   *slog.Logger

	mu     sync.Mutex        // held while edits are handed over, or rejected changes taken back
	handed map[string]string // what was handed over and is not noted yet, by its SHA-256; "" is a removal
}

// Run follows the base until ctx ends. First it hands over what was edited before.
func (f *Follower) Run(ctx context.Context) error {
	w, err := newWatcher(ctx, f.Tree)
	if err != nil {
		return ended(ctx, err)
	}
	defer w.close()
	if err := f.CatchUp(ctx); err != nil {
		return ended(ctx, err)
	}
	return ended(ctx, f.loop(ctx, w))
}

// CatchUp hands over what was edited since the agent began, or since the last time.
func (f *Follower) CatchUp(ctx context.Context) error {
	began := time.Now()
	edited, err := f.Tree.HostChanged(ctx, MaxDirectories)
	if err != nil {
		return err
	}
	pending := map[string]bool{}
	add(pending, edited)
	f.handOver(ctx, pending)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return f.Tree.NoteFollowed(began)
}

// ended is nil for an error that is the end of ctx.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// loop collects paths until they are quiet, and hands them over.
func (f *Follower) loop(ctx context.Context, w *watcher) error {
	pending := map[string]bool{}
	due := time.NewTimer(settle)
	defer due.Stop()
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-w.inotify.Events:
			if !open {
				return nil
			}
			if err := f.collect(ctx, w, event, pending); err != nil {
				return err
			}
			if since.IsZero() {
				since = time.Now()
			}
			due.Reset(min(settle, max(0, longestWait-time.Since(since))))
		case err := <-w.inotify.Errors:
			if err := f.overflow(ctx, w, err, pending); err != nil {
				return err
			}
			due.Reset(settle)
		case <-due.C:
			f.handOver(ctx, pending)
			clear(pending)
			since = time.Time{}
		}
	}
}

// collect notes the path of an event. A new directory is watched, and what is in it
// already is noted too.
func (f *Follower) collect(ctx context.Context, w *watcher, event fsnotify.Event, pending map[string]bool) error {
	path := w.relative(event.Name)
	if path == "." || inGit(path) {
		return nil
	}
	pending[path] = true
	if info, err := os.Lstat(event.Name); !event.Has(fsnotify.Create) || err != nil || !info.IsDir() {
		return nil
	}
	found, err := w.add(ctx, event.Name)
	add(pending, found)
	return err
}

// overflow looks at the whole base after the kernel has dropped events.
func (f *Follower) overflow(ctx context.Context, w *watcher, err error, pending map[string]bool) error {
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		return err
	}
	if _, err := w.add(ctx, f.Tree.Base); err != nil {
		return err
	}
	edited, err := f.Tree.HostChanged(ctx, MaxDirectories)
	add(pending, edited)
	return err
}

// add notes the paths that are followed.
func add(pending map[string]bool, paths []string) {
	for _, path := range paths {
		if !inGit(path) {
			pending[path] = true
		}
	}
}

// inGit reports whether a path is a .git or below one.
func inGit(path string) bool { return slices.Contains(strings.Split(path, "/"), gitDir) }

// handOver hands paths to the guest: first what is gone, the deepest first, then what
// is there, directories before what is in them.
func (f *Follower) handOver(ctx context.Context, pending map[string]bool) {
	root, err := hostpath.OpenDir(f.Tree.Base)
	if err != nil {
		f.Log.WarnContext(ctx, "edits of the host cannot be read", "error", err)
		return
	}
	defer root.Close() //nolint:errcheck // it was only read
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handed = map[string]string{}
	paths := slices.Sorted(maps.Keys(pending))
	covers, err := f.Tree.Covers(ctx, paths, f.Hide)
	if err != nil {
		f.report(ctx, f.Tree.Base, err) // a secret may be among them
		return
	}
	f.conceal(ctx, covers)
	for _, path := range slices.Backward(paths) {
		f.report(ctx, path, f.remove(ctx, root, path))
	}
	for _, path := range paths {
		if _, covered := covers[path]; !covered {
			f.report(ctx, path, f.write(ctx, root, path))
		}
	}
	if err := f.Tree.NoteHanded(f.handed); err != nil && len(f.handed) > 0 {
		f.Log.WarnContext(ctx, "edits of the host were handed to the sandbox and not recorded", "error", err)
	}
}

// report logs a path that was not handed over. What the agent has changed itself is a
// conflict, which the gate shows.
func (f *Follower) report(ctx context.Context, path string, err error) {
	if err != nil && ctx.Err() == nil {
		f.Log.WarnContext(ctx, "an edit of the host was not handed to the sandbox", "path", path, "error", err)
	}
}
