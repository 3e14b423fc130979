package follow

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// conceal removes inside what the base has got of secrets. The kernel shows a file
// that the host makes below an overlay; in a copy there is none to remove.
func (f *Follower) conceal(ctx context.Context, covers map[string]overlay.Cover) {
	if f.Tree.Kind != overlay.Kernel {
		return
	}
	var gone []string
	for _, rel := range slices.Sorted(maps.Keys(covers)) {
		switch done, err := f.concealOne(ctx, rel); {
		case err != nil && ctx.Err() == nil:
			f.Log.ErrorContext(ctx, "a secret of the host may be visible in the sandbox: stop it", "path", rel, "error", err)
		case done:
			gone = append(gone, rel)
		}
	}
	if len(gone) == 0 {
		return
	}
	if err := f.Tree.NoteHidden(ctx, gone); err != nil {
		f.Log.WarnContext(ctx, "secrets of the host were hidden from the sandbox and not recorded", "error", err)
	}
}

// concealOne removes one file inside, unless the agent has one of its own there. A file
// that the kernel does not find yet is made first, so that its removal is recorded in
// the overlay: else the kernel could find the host's later.
func (f *Follower) concealOne(ctx context.Context, rel string) (done bool, err error) {
	if f.Tree.IsHidden(rel) {
		return false, nil
	}
	if untouched, err := f.Tree.Untouched(rel); err != nil || !untouched {
		return false, err
	}
	inside := path.Join(f.Tree.Target, rel)
	info, err := f.Files.Stat(ctx, inside)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := f.Files.Write(ctx, inside, nil, &guestfs.WriteOptions{Exclusive: true}); err != nil {
			return false, err
		}
		info, err = f.Files.Stat(ctx, inside)
	}
	if err != nil {
		return false, err
	}
	if _, err := f.Files.Remove(ctx, inside, &guestfs.RemoveOptions{Missing: true, IfVersion: info.Version}); err != nil {
		return false, fmt.Errorf("remove it inside: %w", err)
	}
	return true, nil
}
