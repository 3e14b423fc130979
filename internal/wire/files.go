package wire

import "strings"

// The operations on files. Each uses Request.File, and of it the path and
// the part named after the operation.
//
//	stat, mkdir, remove, rename, copy    Result or Error
//	read       Result FileStat, Data*, DataEnd
//	write      the host sends Data*, DataEnd; then Result FileWritten
//	list, walk Entries*, Result FileEnd
//	search     Matches*, Result FileEnd
//	watch      Started once it watches, then Events* until the host leaves
//	pull       (Node, Data*, DataEnd)*, Result FileEnd
//	push       the host sends (Node, Data*, DataEnd)*, DataEnd; then Result FileEnd
//
// An Error may take the place of any frame that a guest sends, and is the last.
const (
	OpFileStat   Op = "file.stat"
	OpFileRead   Op = "file.read"
	OpFileWrite  Op = "file.write"
	OpFileMkdir  Op = "file.mkdir"
	OpFileRemove Op = "file.remove"
	OpFileRename Op = "file.rename"
	OpFileCopy   Op = "file.copy"
	OpFileList   Op = "file.list"
	OpFileWalk   Op = "file.walk"
	OpFileSearch Op = "file.search"
	OpFileWatch  Op = "file.watch"
	OpFilePull   Op = "file.pull"
	OpFilePush   Op = "file.push"
	OpFileDirect Op = "file.direct" // answers Direct
)

// The frames of bulk data, in both directions.
const (
	FrameData    FrameType = 32 // bytes of a file or a connection
	FrameDataEnd FrameType = 33 // empty: no more of these bytes will come
	FrameEntries FrameType = 34 // JSON []FileEntry
	FrameMatches FrameType = 35 // JSON []FileMatch
	FrameEvents  FrameType = 36 // JSON []FileEvent
	FrameNode    FrameType = 37 // JSON FileNode: what follows belongs to it
)

// The reasons why a file is refused.
const (
	CodeFileNotFound Code = "file_not_found" // no such file or directory
	CodeFileExists   Code = "file_exists"    // and must not
	CodeForbidden    Code = "forbidden"      // by its permissions
	CodeReadOnly     Code = "read_only"      // the root, or the file system
	CodeOutside      Code = "outside"        // not beneath its root
	CodeSymlink      Code = "symlink"        // it, or a directory above it
	CodeHardLink     Code = "hard_link"      // a file with more than one name
	CodeFIFO         Code = "fifo"
	CodeDevice       Code = "device"
	CodeSocket       Code = "socket"
	CodeMount        Code = "mount"     // another file system is mounted there
	CodeIsDir        Code = "is_dir"    // a file was expected
	CodeNotDir       Code = "not_dir"   // a directory was expected
	CodeNotEmpty     Code = "not_empty" // a directory that is to go
	CodeChanged      Code = "changed"   // not the version that was expected
	CodeTooLarge     Code = "too_large" // over a limit on bytes, entries or depth
	CodeNoSpace      Code = "no_space"  // disk or quota are full
	CodeTimeout      Code = "timeout"   // over a limit on time
)

// Limits on files. They bound what one operation costs either side.
const (
	// MaxPath is Linux's own limit on a path, MaxName on one element of it.
	MaxPath = 4096
	MaxName = 255
	// MaxData is how many bytes a Data frame carries at most. Its reader passes
	// them on as they come, and need not hold them.
	MaxData = 1 << 20
	// DataFrame is how many of them are put together in memory.
	DataFrame = 256 << 10
	// MaxDirect bounds the direct connections that belong to a bulk wire.
	MaxDirect = 8
	// MaxDirectCommands bounds those that belong to a control wire.
	MaxDirectCommands = 64
	// MaxDrain is how much of a refused content a guest reads to its end, so
	// that a direct connection can be used again.
	MaxDrain = 128 << 10
	// MaxEntries bounds the entries that a list or a walk returns, and
	// MaxScanned those that a walk, search, pull or recursive change looks at.
	MaxEntries = 50_000
	MaxScanned = 1_000_000
	// MaxDepth bounds how deep an operation descends: each level of depth holds
	// a descriptor.
	MaxDepth = 128
	// MaxMatches bounds the lines that a search returns, MaxMatchLine the bytes
	// of each, and MaxContext the lines around it.
	MaxMatches   = 10_000
	MaxMatchLine = 4 << 10
	MaxContext   = 20
	// MaxPattern bounds a search's pattern, MaxGlobs how many globs it has.
	MaxPattern = 4 << 10
	MaxGlobs   = 64
	// MaxSearchedFile is the largest file that is searched.
	MaxSearchedFile = 64 << 20
	// MaxFileTime bounds every operation but watching and plain transfers.
	MaxFileTime = 60_000 // ms
	// MaxWatched bounds the directories of one watch.
	MaxWatched = 4096
)

// RootedPath is a path beneath a root. The host takes roots from the engine's
// table of mounts; only what lies beneath one can be named.
type RootedPath struct {
	Root     Text `json:"root"` // absolute and clean
	Path     Text `json:"path"` // relative and clean; "." is the root itself
	ReadOnly bool `json:"readOnly,omitempty"`
}

// File is an operation on a file.
type File struct {
	RootedPath
	To     *RootedPath `json:"to,omitempty"`
	Read   *FileRead   `json:"read,omitempty"`
	Write  *FileWrite  `json:"write,omitempty"`
	Change *FileChange `json:"change,omitempty"` // mkdir, remove, rename, copy
	Scan   *FileScan   `json:"scan,omitempty"`   // list, walk, search, pull, push, watch, copy, remove
	Search *FileSearch `json:"search,omitempty"`
}

// FileRead says which part of a file is wanted.
type FileRead struct {
	Offset int64 `json:"offset,omitempty"` // negative: from the end
	Limit  int64 `json:"limit,omitempty"`  // 0: to the end
}

// FileWrite says how a file is written.
type FileWrite struct {
	Mode      uint32 `json:"mode,omitempty"` // 0: as it is, or the usual one
	Exclusive bool   `json:"exclusive,omitempty"`
	IfVersion string `json:"ifVersion,omitempty"`
	MkdirAll  bool   `json:"mkdirAll,omitempty"`
	Sync      bool   `json:"sync,omitempty"`
}

// FileChange says how names are changed.
type FileChange struct {
	Mode      uint32 `json:"mode,omitempty"`
	MkdirAll  bool   `json:"mkdirAll,omitempty"`
	Recursive bool   `json:"recursive,omitempty"`
	Missing   bool   `json:"missing,omitempty"` // remove: it may be gone already
	NoReplace bool   `json:"noReplace,omitempty"`
	IfVersion string `json:"ifVersion,omitempty"`
}

// FileScan bounds an operation on many files.
type FileScan struct {
	After       Text   `json:"after,omitempty"` // list: names that follow this one
	MaxEntries  int    `json:"maxEntries,omitempty"`
	MaxDepth    int    `json:"maxDepth,omitempty"`
	MaxBytes    int64  `json:"maxBytes,omitempty"`
	TimeMs      int64  `json:"timeMs,omitempty"`
	Include     []Text `json:"include,omitempty"` // globs
	Exclude     []Text `json:"exclude,omitempty"` // globs; a directory is not entered
	Recursive   bool   `json:"recursive,omitempty"`
	SkipRefused bool   `json:"skipRefused,omitempty"`
	Links       bool   `json:"links,omitempty"` // pull, push: symbolic links are part of the tree; pull: so is every name of a hard link
}

// FileSearch is what is searched for.
type FileSearch struct {
	Pattern     Text  `json:"pattern"`
	Literal     bool  `json:"literal,omitempty"`
	IgnoreCase  bool  `json:"ignoreCase,omitempty"`
	Context     int   `json:"context,omitempty"`
	MaxMatches  int   `json:"maxMatches"`
	MaxPerFile  int   `json:"maxPerFile,omitempty"`
	MaxLine     int   `json:"maxLine"`
	MaxFileSize int64 `json:"maxFileSize"`
}

// Direct admits one direct connection: it carries one request after the other
// instead of streams, because multiplexing costs large transfers half their speed
// and small ones half their time. It belongs to the wire over which the token was
// sent, and ends with it.
type Direct struct {
	Token string `json:"token"`
}

// TemporaryPrefix begins the names of files that the guest writes to before they get
// their own name.
const TemporaryPrefix = ".atoll-tmp-"

// FileKind is the kind of a file.
type FileKind string

// The kinds of file.
const (
	KindFile    FileKind = "file"
	KindDir     FileKind = "dir"
	KindSymlink FileKind = "symlink"
	KindFIFO    FileKind = "fifo"
	KindSocket  FileKind = "socket"
	KindDevice  FileKind = "device"
)

// Known reports whether k is one of the kinds above.
func (k FileKind) Known() bool {
	switch k {
	case KindFile, KindDir, KindSymlink, KindFIFO, KindSocket, KindDevice:
		return true
	}
	return false
}

// FileStat describes a file.
type FileStat struct {
	Kind    FileKind `json:"kind"`
	Size    int64    `json:"size"`
	Mode    uint32   `json:"mode"` // permissions
	MtimeNs int64    `json:"mtimeNs"`
	Links   uint64   `json:"links,omitempty"`
	UID     uint32   `json:"uid"`
	GID     uint32   `json:"gid"`
	Mount   bool     `json:"mount,omitempty"`   // another file system is mounted here
	Version string   `json:"version,omitempty"` // of a regular file
	Target  Text     `json:"target,omitempty"`  // of a symbolic link
	Offset  int64    `json:"offset,omitempty"`  // read: where it begins
}

// FileEntry is a file in a list or a walk.
type FileEntry struct {
	Path    Text     `json:"path"` // relative to where it began
	Kind    FileKind `json:"kind"`
	Size    int64    `json:"size"`
	Mode    uint32   `json:"mode"`
	MtimeNs int64    `json:"mtimeNs"`
	Mount   bool     `json:"mount,omitempty"`
}

// FileWritten is the answer to write.
type FileWritten struct {
	FileStat
	Created bool `json:"created,omitempty"`
}

// FileMatch is one line that a search found.
type FileMatch struct {
	Path   Text   `json:"path"`
	Line   int    `json:"line"`   // from 1
	Column int    `json:"column"` // of the first match in bytes, from 1
	Text   Text   `json:"text"`
	Cut    bool   `json:"cut,omitempty"` // the line is longer
	Before []Text `json:"before,omitempty"`
	After  []Text `json:"after,omitempty"`
}

// FileEvent is a change that a watch saw.
type FileEvent struct {
	Path Text   `json:"path"`
	What string `json:"what"` // created, written, removed, moved, attributes, lost
	Dir  bool   `json:"dir,omitempty"`
}

// FileNode is one file, directory or symbolic link of a tree that is sent.
type FileNode struct {
	Path    Text     `json:"path"` // relative to the tree's root, "." is that itself
	Kind    FileKind `json:"kind"` // file, dir or symlink
	Mode    uint32   `json:"mode"`
	MtimeNs int64    `json:"mtimeNs"`
	Size    int64    `json:"size"`
	Target  Text     `json:"target,omitempty"` // of a symbolic link
}

// ValidTarget reports whether a symbolic link can have the target.
func ValidTarget(target Text) bool {
	return target != "" && len(target) <= MaxPath && !strings.ContainsRune(string(target), 0)
}

// FileEnd is the summary of an operation on many files.
type FileEnd struct {
	Files   int           `json:"files,omitempty"` // that were read, searched, copied, removed
	Dirs    int           `json:"dirs,omitempty"`
	Bytes   int64         `json:"bytes,omitempty"`
	Binary  int           `json:"binary,omitempty"` // search: skipped
	Large   int           `json:"large,omitempty"`  // search: skipped
	Refused int           `json:"refused,omitempty"`
	Names   []FileRefused `json:"names,omitempty"` // the first of them
	Cut     Code          `json:"cut,omitempty"`   // which limit ended it early: too_large or timeout
}

// FileRefused is a file that was left out, and why.
type FileRefused struct {
	Path Text `json:"path"`
	Code Code `json:"code"`
}

// MaxRefused bounds the names in FileEnd.
const MaxRefused = 16
