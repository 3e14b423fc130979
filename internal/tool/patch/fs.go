package patch

import (
	"context"
	"io/fs"
)

// FS is the files that a patch is applied to. Paths are as the patch has them:
// the FS resolves relative ones and refuses those that may not be touched. It
// also decides what "read" means for Version: one that remembers what a model
// has seen can refuse a file that changed since then.
type FS interface {
	// ReadFile returns a whole file, at most MaxFileBytes of it or an error. Its
	// error is fs.ErrNotExist if there is nothing at that path.
	ReadFile(ctx context.Context, path string) (File, error)

	// WriteFile replaces a file's content, if the file still has the version
	// given in file, and returns the new version. The version Absent means that
	// there must be no file: it is made, and the directories above it. A mode of
	// zero keeps the mode that the file has, or is the usual one for a new file.
	WriteFile(ctx context.Context, path string, file File) (Version, error)

	// Rename moves a file, if it still has the version given, to a path where
	// there is nothing, and makes the directories above it.
	Rename(ctx context.Context, from, to string, version Version) (Version, error)

	// Remove removes a file, if it still has the version given. Directories that
	// WriteFile or Rename had to make may stay.
	Remove(ctx context.Context, path string, version Version) error
}

// Version stands for the state of a file: equal versions mean an unchanged
// file. A method of FS that finds another version changes nothing and wraps
// ErrChanged.
type Version string

// Absent is the version of a file that does not exist.
const Absent Version = ""

// A File is a file's content, permissions and version.
type File struct {
	Data    []byte
	Mode    fs.FileMode
	Version Version
}
