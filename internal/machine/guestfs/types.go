package guestfs

import (
	"io/fs"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// FileKind is what a name stands for: KindFile and so on of package wire.
type FileKind = wire.FileKind

// The kinds of file.
const (
	KindFile    = wire.KindFile
	KindDir     = wire.KindDir
	KindSymlink = wire.KindSymlink
	KindFIFO    = wire.KindFIFO
	KindSocket  = wire.KindSocket
	KindDevice  = wire.KindDevice
)

// Version stands for the state of a regular file: equal versions mean that it
// is the same file with the same content. It holds until the
// sandbox is restarted; after that an unchanged file may have another.
type Version string

// FileInfo is what the guest reports of a file.
type FileInfo struct {
	Path    string // as given
	Kind    FileKind
	Size    int64
	Mode    fs.FileMode // permissions only
	ModTime time.Time
	UID     int
	GID     int
	Links   int     // names that the file has
	Mount   bool    // another file system is mounted here
	Version Version // "" if it is no regular file
	Target  string  // of a symbolic link; do not follow it
}

// FileEntry is a file in a list or a walk.
type FileEntry struct {
	Path    string // relative to the directory that was given; in a list, a name
	Kind    FileKind
	Size    int64
	Mode    fs.FileMode
	ModTime time.Time
	Mount   bool // another file system is mounted here; it is not entered
}

// ReadOptions select a part of a file.
type ReadOptions struct {
	Offset int64 // negative: that many bytes before the end
	Limit  int64 // at most; 0: MaxRead for Read, all there is for Open
}

// Content is a part of a file.
type Content struct {
	Info   FileInfo // as it was before it was read
	Offset int64    // of Data in the file
	Data   []byte
	More   bool // the file has bytes after Data
}

// WriteOptions are how a file is written.
type WriteOptions struct {
	// Mode is the file's, exactly. 0 keeps that of an existing file and gives a
	// new one 0o644.
	Mode fs.FileMode
	// Exclusive refuses a file that exists (fs.ErrExist).
	Exclusive bool
	// IfVersion, if not empty, refuses a file that is missing or in another
	// version (ErrChanged).
	IfVersion Version
	// MkdirAll makes the directories above the file.
	MkdirAll bool
	// Sync returns only when file and name are on disk.
	Sync bool
}

// WriteResult is the file as it was written.
type WriteResult struct {
	Info    FileInfo
	Created bool // there was none before
}

// MkdirOptions are how a directory is made.
type MkdirOptions struct {
	Parents bool        // make those above it too, and accept one that exists
	Mode    fs.FileMode // 0: 0o755
}

// RemoveOptions are how a file or directory is removed. A symbolic link, or anything else that is
// no directory, is removed itself; nothing is followed.
type RemoveOptions struct {
	Recursive bool    // with all that is in it
	Missing   bool    // it is no error if there is nothing
	IfVersion Version // as for a write
}

// RenameOptions are how a file or directory is moved. It cannot move to another
// file system (ErrMount).
type RenameOptions struct {
	NoReplace bool    // refuse a target that exists (fs.ErrExist)
	MkdirAll  bool    // make the directories above the target
	IfVersion Version // of the file that is moved
}

// CopyOptions are how a file or directory is copied.
type CopyOptions struct {
	Recursive bool // a directory, with all that is in it
	NoReplace bool
	MkdirAll  bool
	Limits    ScanLimits
}

// ScanLimits bound an operation on many files. Zero values are the defaults.
type ScanLimits struct {
	Entries int           // to look at; default and most wire.MaxScanned
	Depth   int           // default and most wire.MaxDepth
	Bytes   int64         // default and most MaxTree
	Time    time.Duration // default 10 s, at most 60 s
}

// Totals are the summary of an operation on many files.
type Totals struct {
	Files, Dirs int
	Bytes       int64
	// Refused is how many were left out because of what they are, and
	// RefusedNames the first of them.
	Refused      int
	RefusedNames []Refused
}

// Refused is a file that was left out, and why: ErrSymlink and so on.
type Refused struct {
	Path string
	Err  error
}

// ListOptions select a part of a directory.
type ListOptions struct {
	After string // names that follow this one
	Max   int    // default 10,000, at most wire.MaxEntries
}

// Listing is a part of a directory, sorted by name.
type Listing struct {
	Entries []FileEntry
	More    bool // there are names after the last
}

// WalkOptions select a part of a tree.
type WalkOptions struct {
	Max     int      // entries; default 10,000, at most wire.MaxEntries
	Exclude []string // globs, as in SearchOptions; such directories are not entered
	Limits  ScanLimits
}

// WalkResult is how a walk ended.
type WalkResult struct {
	Totals Totals
	// Cut is nil if everything was visited, else ErrTooLarge or ErrTimeout.
	Cut error
}

// SearchOptions are what is searched for, and where. A glob without a slash is
// compared with a file's name, one with a slash with its path beneath the
// directory where the search began; ** stands for any number of directories, {a,b} for
// either.
type SearchOptions struct {
	Pattern    string // RE2
	Literal    bool   // Pattern is plain text
	IgnoreCase bool
	Include    []string // globs of files; none: all
	Exclude    []string // globs of files and directories

	Context     int   // lines before and after a match, at most wire.MaxContext
	MaxMatches  int   // default 200, at most wire.MaxMatches
	MaxPerFile  int   // default: as MaxMatches
	MaxLine     int   // bytes of a line; default 500, at most wire.MaxMatchLine
	MaxFileSize int64 // larger files are skipped; default 4 MiB, at most wire.MaxSearchedFile
	Limits      ScanLimits
}

// Match is a line that contains what was searched for. Text is as it is in the
// file, which may be anything.
type Match struct {
	Path   string // relative to where the search began; "." if that is the file
	Line   int    // from 1
	Column int    // of the first match, in bytes, from 1
	Text   string
	Cut    bool // the line is longer than Text
	Before []string
	After  []string
}

// SearchResult is what a search found, in order of path and line.
type SearchResult struct {
	Matches []Match
	Totals  Totals // Files and Bytes that were searched
	Binary  int    // files skipped because they are no text
	Large   int    // files skipped because of their size
	Cut     error  // nil if everything was searched, else ErrTooLarge or ErrTimeout
}

// WatchOptions are what is watched.
type WatchOptions struct {
	Recursive bool // directories below too, at most wire.MaxWatched
}

// FileEvent is a change. Several equal changes in a row may be reported once.
type FileEvent struct {
	Path string // relative to the directory that is watched, "." is that itself
	What Change
	Dir  bool
}

// Change is what happened to a file.
type Change string

// The changes.
const (
	FileCreated    Change = "created" // or moved here
	FileWritten    Change = "written"
	FileRemoved    Change = "removed" // or moved away
	FileAttributes Change = "attributes"
	// FileLost means that changes were not seen: look at everything again.
	FileLost Change = "lost"
)

// TarOptions bound and shape a tree that is copied as an archive.
type TarOptions struct {
	// SkipRefused leaves files out that are refused, and lists them in Totals.
	// Otherwise the first ends the operation.
	SkipRefused bool
	// Links makes symbolic links part of the tree, as links, and reads each name of a
	// hard link as a file of its own; both are refused otherwise. A guest without wire.FeatureTreeLinks fails with ErrUnsupported.
	Links bool
	// Exclude are globs, as in SearchOptions. Only for ReadTar.
	Exclude []string
	// MkdirAll makes the directory that WriteTar unpacks into.
	MkdirAll bool
	Limits   ScanLimits // Bytes default to MaxTree, Time does not apply
}
