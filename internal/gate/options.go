package gate

import (
	"cmp"
	"context"
	"io/fs"
	"iter"
	"os"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// Source is where changes are read from: a tree of package overlay. Everything that
// it returns is hostile, except of AsBegun.
type Source interface {
	// Changes yields every file, link and directory that differs from the base.
	Changes(ctx context.Context) iter.Seq2[overlay.Change, error]
	// Open opens a changed regular file without following a link or waiting.
	Open(path string) (*os.File, error)
	// AsBegun reports whether the base has at a path what the agent began with.
	AsBegun(path string) (bool, error)
	// NoteApplied makes what the base has at these paths count as begun.
	NoteApplied(paths ...string) error
}

// Limits bound what one Set holds. Zero fields take the defaults.
type Limits struct {
	Files      int   // entries that are listed, and as many deletions; 1,000
	FileBytes  int64 // of one file; 10 MiB
	TotalBytes int64 // of all staged files; 100 MiB
	PathBytes  int   // 1,024
	Kept       int   // applied batches that can be undone; 100
}

func (l Limits) withDefaults() Limits {
	l.Files = cmp.Or(max(l.Files, 0), 1000)
	l.FileBytes = cmp.Or(max(l.FileBytes, 0), 10<<20)
	l.TotalBytes = cmp.Or(max(l.TotalBytes, 0), 100<<20)
	l.PathBytes = cmp.Or(max(l.PathBytes, 0), 1024)
	l.Kept = cmp.Or(max(l.Kept, 0), 100)
	return l
}

// Options describe one gate.
type Options struct {
	Dir    string // of the gate's own files, which no sandbox sees
	Base   string // the directory of the host
	Source Source
	Limits Limits
	// Protected are protections of the configuration; they come before Protections.
	Protected []contentpolicy.Protection
	// Ignore are patterns of paths that are withheld, beside the .gitignore files of
	// the base.
	Ignore []string
	// Known are secrets of the host, which must not be in anything.
	Known [][]byte
	// Committed reports whether a file with this mode and git object id ("" for one that is
	// gone) is in the agent's commits, which leave by another way; nil if there are
	// none.
	Committed func(path string, mode fs.FileMode, blob string) bool
	// Subject and Record are for the audit log; Record may be nil.
	Subject audit.Subject
	Record  func(audit.Event)

	// checkpoint is called after every step that a test ends the process at.
	checkpoint func(step string)
}

var _ Source = (*overlay.Tree)(nil)
