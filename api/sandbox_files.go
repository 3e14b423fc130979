package api

import "time"

// FilePath names a file of a sandbox.
type FilePath struct {
	Path string `query:"path" doc:"Absolute, or relative to the sandbox's working directory."`
}

// WriteFileQuery says where a file is written.
type WriteFileQuery struct {
	Path      string `query:"path" doc:"Absolute, or relative to the sandbox's working directory; missing directories are made."`
	Mode      int    `query:"mode" min:"1" max:"511" doc:"Permissions as a decimal number; those of the file that is there, or 420 (0644)."`
	Exclusive bool   `query:"exclusive" doc:"Refuse a file that exists."`
}

// FileInfo describes a file of a sandbox.
type FileInfo struct {
	Path     string    `json:"path"`
	Kind     string    `json:"kind" enum:"file|dir|symlink|fifo|socket|device"`
	Size     int64     `json:"size"`
	Mode     int       `json:"mode" doc:"Permissions."`
	Modified time.Time `json:"modified"`
	UID      int       `json:"uid"`
	GID      int       `json:"gid"`
	Target   string    `json:"target,omitempty" doc:"Of a symbolic link, which is not followed."`
}

// FileEntry is a file in a list.
type FileEntry struct {
	Name     string    `json:"name"`
	Path     string    `json:"path"`
	Kind     string    `json:"kind" enum:"file|dir|symlink|fifo|socket|device"`
	Size     int64     `json:"size"`
	Mode     int       `json:"mode" doc:"Permissions."`
	Modified time.Time `json:"modified"`
}

// ListFilesQuery selects a part of a directory.
type ListFilesQuery struct {
	Path  string `query:"path" doc:"Absolute, or relative to the sandbox's working directory."`
	After string `query:"after" doc:"Only names after this one."`
	Limit int    `query:"limit" min:"1" max:"10000" doc:"At most so many; 10000 if not given."`
}

// Files is a part of a directory, sorted by name.
type Files struct {
	Files []FileEntry `json:"files"`
	More  bool        `json:"more" doc:"There are names after the last."`
}

// RemoveFileQuery says what is removed.
type RemoveFileQuery struct {
	Path      string `query:"path" doc:"Absolute, or relative to the sandbox's working directory."`
	Recursive bool   `query:"recursive" doc:"A directory with all that is in it."`
}

// MoveFile says what is moved where, within one file system.
type MoveFile struct {
	From      string `json:"from"`
	To        string `json:"to" doc:"Missing directories are made."`
	Exclusive bool   `json:"exclusive,omitzero" doc:"Refuse a target that exists."`
}

// MakeDirectory names a directory to make, with those above it.
type MakeDirectory struct {
	Path      string `json:"path"`
	Exclusive bool   `json:"exclusive,omitzero" doc:"Refuse one that exists, and a parent that does not."`
}

// FileTotals is how much an operation was about.
type FileTotals struct {
	Files        int      `json:"files"`
	Dirs         int      `json:"dirs"`
	Bytes        int64    `json:"bytes"`
	LeftOut      int      `json:"leftOut,omitzero" doc:"Links, pipes and devices that were left out."`
	LeftOutNames []string `json:"leftOutNames,omitempty" doc:"The first of them, and why."`
}

// WatchQuery says what is watched.
type WatchQuery struct {
	Path      string `query:"path" doc:"A directory."`
	Recursive bool   `query:"recursive" doc:"Those below it too."`
}

// The events of a directory that is watched.
const (
	FileWatching = "watching"
	FileChanged  = "change" // data is a FileChange
)

// FileChange is what happened to a file.
type FileChange struct {
	Path string `json:"path"`
	What string `json:"what" enum:"created|written|removed|attributes|lost" doc:"lost: changes were not seen, look at everything again."`
	Dir  bool   `json:"dir,omitzero"`
}
