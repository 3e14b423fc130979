package take

import (
	"context"
	"crypto/sha1" //nolint:gosec // it is how git names its objects
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"

	"github.com/atoll-run/atoll/internal/relay/git"
)

// File is a changed path of the workspace.
type File struct {
	Path    string
	Mode    fs.FileMode
	Size    int64
	Deleted bool
	// Open returns the content, for a link its text; it is called only if the
	// agent's commits have the path.
	Open func() (io.ReadCloser, error)
}

// Covered returns the paths whose state the agent committed: they are part of what
// Take takes, or of another branch that the host has, and need no review as files.
// A path that the agent's HEAD has as the host's HEAD has it is never covered: no
// commit carries such a change.
func (o *Offer) Covered(ctx context.Context, files []File) (map[string]bool, error) {
	covered := map[string]bool{}
	if o.Head == "" || o.Head == o.hostHead {
		return covered, nil
	}
	from := git.EmptyTree
	if o.hostHead != "" {
		from = o.hostHead
	}
	changes, err := o.repo.Changes(ctx, from, o.Head)
	if err != nil {
		return nil, err
	}
	committed := make(map[string]*git.Change, len(changes))
	for i := range changes {
		committed[changes[i].Path] = &changes[i]
	}
	for i := range files {
		c := committed[files[i].Path]
		if c == nil {
			continue
		}
		if covered[files[i].Path], err = equals(c, &files[i]); err != nil {
			return nil, err
		}
	}
	return covered, nil
}

// equals reports whether a file is what a commit has at its path.
func equals(c *git.Change, f *File) (bool, error) {
	switch {
	case f.Deleted || c.Removed():
		return f.Deleted && c.Removed(), nil
	case c.NewMode != gitMode(f.Mode):
		return false, nil
	}
	content, err := f.Open()
	if err != nil {
		return false, err
	}
	defer content.Close()
	id, err := blobID(content, f.Size)
	return id == c.NewID, err
}

// gitMode is how git writes the mode of a file; "" if it keeps no such file.
func gitMode(mode fs.FileMode) string {
	switch {
	case mode.Type() == fs.ModeSymlink:
		return git.ModeLink
	case !mode.IsRegular():
		return ""
	case mode.Perm()&0o100 != 0:
		return git.ModeProgram
	}
	return git.ModeFile
}

// blobID is the name that git gives to content. Content of another size than was
// said has none.
func blobID(content io.Reader, size int64) (string, error) {
	hash := sha1.New() //nolint:gosec // it is how git names its objects
	fmt.Fprintf(hash, "blob %d\x00", size)
	n, err := io.Copy(hash, io.LimitReader(content, size+1))
	if err != nil || n != size {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
