package follow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// MaxFile is the largest file that is handed over. Larger ones come with a refresh.
const MaxFile = 16 << 20

// Files are the operations of the guest that a Follower needs, as guestfs.Files has
// them.
type Files interface {
	Stat(ctx context.Context, path string) (*guestfs.FileInfo, error)
	Read(ctx context.Context, path string, options *guestfs.ReadOptions) (*guestfs.Content, error)
	Write(ctx context.Context, path string, content []byte, options *guestfs.WriteOptions) (*guestfs.WriteResult, error)
	Remove(ctx context.Context, path string, options *guestfs.RemoveOptions) (guestfs.Totals, error)
	Mkdir(ctx context.Context, path string, options *guestfs.MkdirOptions) error
}

// remove removes inside what is gone from the base, unless the agent has changed it.
func (f *Follower) remove(ctx context.Context, root *os.File, rel string) error {
	if _, err := hostpath.IdentifyBeneath(root, rel); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	inside := path.Join(f.Tree.Target, rel)
	info, err := f.Files.Stat(ctx, inside)
	if errors.Is(err, fs.ErrNotExist) {
		f.handed[rel] = ""
		return nil
	} else if err != nil {
		return err
	}
	if untouched, err := f.Tree.Untouched(rel); err != nil || !untouched {
		return err
	}
	if _, err = f.Files.Remove(ctx, inside, &guestfs.RemoveOptions{Missing: true, IfVersion: info.Version}); err != nil {
		return ignoreChanged(err)
	}
	f.handed[rel] = ""
	return nil
}

// write makes inside what the base has, unless the agent has changed it. Links are
// not followed and special files are left out.
func (f *Follower) write(ctx context.Context, root *os.File, rel string) error {
	facts, err := hostpath.IdentifyBeneath(root, rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case facts.Kind == hostpath.KindDirectory:
		return f.writeDir(ctx, rel)
	case facts.Kind != hostpath.KindFile:
		return nil
	}
	content, err := hostpath.ReadRegularBeneath(root, rel, MaxFile)
	if err != nil {
		return err
	}
	options := &guestfs.WriteOptions{Mode: facts.Mode.Perm()}
	same, err := f.condition(ctx, rel, content, options)
	if err != nil {
		return ignoreChanged(err)
	}
	if same && f.isCopied(rel) {
		f.handed[rel] = sum(content)
		return nil
	}
	if _, err = f.Files.Write(ctx, path.Join(f.Tree.Target, rel), content, options); err != nil {
		return ignoreChanged(err)
	}
	f.handed[rel] = sum(content)
	return nil
}

// isCopied reports whether the agent sees a file of its own side. The kernel shows a
// file of the base that was written in place, but programs inside that watch it are
// told only of what is written inside.
func (f *Follower) isCopied(rel string) bool {
	above, err := f.Tree.IsAbove(rel)
	return f.Tree.Kind != overlay.Kernel || err != nil || above
}

// condition completes the options of a write so that it replaces only what the agent
// has not changed; errTouched if it has. Same means that the agent sees the content.
func (f *Follower) condition(ctx context.Context, rel string, content []byte, options *guestfs.WriteOptions) (same bool, err error) {
	inside := path.Join(f.Tree.Target, rel)
	info, err := f.Files.Stat(ctx, inside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		options.Exclusive = true
	case err != nil:
		return false, err
	case info.Kind != guestfs.KindFile:
		return false, errTouched
	default:
		options.IfVersion = info.Version
	}
	if _, removed := f.handed[rel]; removed {
		return false, nil // the host has made it again meanwhile
	}
	if untouched, err := f.Tree.Untouched(rel); err != nil || !untouched {
		return false, errors.Join(err, errTouched)
	}
	if options.Exclusive || info.Size != int64(len(content)) || info.Mode != options.Mode {
		return false, nil
	}
	seen, err := f.Files.Read(ctx, inside, nil)
	return err == nil && string(seen.Data) == string(content), err
}

func (f *Follower) writeDir(ctx context.Context, rel string) error {
	inside := path.Join(f.Tree.Target, rel)
	if _, err := f.Files.Stat(ctx, inside); !errors.Is(err, fs.ErrNotExist) {
		return err // it is there: nothing to do
	}
	untouched, err := f.Tree.Untouched(rel)
	if err != nil || !untouched {
		return err
	}
	if err := f.Files.Mkdir(ctx, inside, nil); err != nil {
		return ignoreChanged(err)
	}
	return f.Tree.NoteApplied(rel)
}

// errTouched means that the agent has changed a path itself.
var errTouched = errors.New("the agent has changed it")

// ignoreChanged is nil where the agent was there first: that is a conflict, which the
// gate shows.
func ignoreChanged(err error) error {
	if errors.Is(err, errTouched) || errors.Is(err, machine.ErrChanged) || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}
