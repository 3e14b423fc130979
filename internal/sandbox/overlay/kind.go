package overlay

import "io/fs"

// Kind is how changes are kept apart from the base.
type Kind string

// The kinds. Auto is a wish only: a tree has one of the others.
const (
	Auto   Kind = "auto"
	Kernel Kind = "kernel" // an overlay mount: upper and work directory
	Copy   Kind = "copy"   // a copy of the base and a manifest
)

// Marks is the namespace of extended attributes in which the kernel keeps the
// marks of an overlay. Marks of the other namespace are content, never marks.
type Marks string

// The namespaces. A copy has none.
const (
	MarksTrusted Marks = "trusted" // mounted by root outside of a user namespace
	MarksUser    Marks = "user"    // mounted with userxattr
)

// KernelMount is what the runtime can mount.
type KernelMount struct {
	Marks    Marks  // "" if it cannot mount an overlay
	Why      string // why it cannot
	Volatile bool   // the mount leaves syncing to Reconcile
}

// Limit bounds a copy of a base. Zero fields mean DefaultCopyLimit's.
type Limit struct {
	Bytes int64
	Files int
}

// DefaultCopyLimit returns how much is copied where the configuration does not say.
func DefaultCopyLimit() Limit { return Limit{Bytes: 2 << 30, Files: 200_000} }

func (l Limit) orDefault() Limit {
	if l.Bytes == 0 {
		l.Bytes = DefaultCopyLimit().Bytes
	}
	if l.Files == 0 {
		l.Files = DefaultCopyLimit().Files
	}
	return l
}

// The bounds of every walk.
const (
	MaxDepth   = 500       // directories within each other
	MaxEntries = 1_000_000 // entries above the base that Changes looks at
	MaxBase    = 5_000_000 // entries of a base
	MaxPath    = 4_000     // bytes of a path
)

// ChangeKind is what happened to a path.
type ChangeKind string

// The kinds of change.
const (
	Added    ChangeKind = "added"
	Modified ChangeKind = "modified" // the content, and perhaps the mode
	Deleted  ChangeKind = "deleted"
	Mode     ChangeKind = "mode"     // the mode only
	Link     ChangeKind = "link"     // a symbolic link is new or leads elsewhere
	Replaced ChangeKind = "replaced" // a file, directory or link is now another of these
	Renamed  ChangeKind = "renamed"  // Path has the content of From, which is also listed as deleted
	Special  ChangeKind = "special"  // cannot be applied; Note says why
)

// Change is one path that differs from the base.
type Change struct {
	Path    string      `json:"path"` // relative to the base, as the bytes it was made with
	From    string      `json:"from,omitempty"`
	Kind    ChangeKind  `json:"kind"`
	Mode    fs.FileMode `json:"mode,omitempty"`    // type and all bits above the base
	OldMode fs.FileMode `json:"oldMode,omitempty"` // those of the base
	Size    int64       `json:"size,omitempty"`
	Link    string      `json:"link,omitempty"` // text of a symbolic link
	Note    string      `json:"note,omitempty"`
	Hidden  bool        `json:"hidden,omitempty"` // the base's file was never visible inside
	Torn    bool        `json:"torn,omitempty"`   // may be incomplete: the host went down while it was mounted
}
