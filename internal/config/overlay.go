package config

// OverlayKind says how the changes of an overlay are kept apart.
type OverlayKind string

// The values of sandbox.overlay.kind.
const (
	OverlayAuto   OverlayKind = "auto"
	OverlayKernel OverlayKind = "kernel"
	OverlayCopy   OverlayKind = "copy"
)

// Overlay is sandbox.overlay.* of one agent. It counts
// with workspaceAccess overlay.
type Overlay struct {
	Kind      OverlayKind   `json:"kind"`
	CopyLimit CopyLimit     `json:"copyLimit"` // of the largest directory that is copied
	More      []OverlayTree `json:"more,omitzero"`
	Empty     []string      `json:"empty,omitzero"` // of a copy
}

// CopyLimit is sandbox.overlay.copyLimit.
type CopyLimit struct {
	Size  int64 `json:"size"`  // bytes
	Files int64 `json:"files"` // files, directories and links
}

// OverlayTree is one directory besides the workspace. Source is absolute.
type OverlayTree struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// SyncMode says who decides that a change reaches the workspace.
type SyncMode string

// The values of sandbox.sync.mode.
const (
	SyncReview SyncMode = "review"
	SyncAuto   SyncMode = "auto"
)

// Sync is sandbox.sync.* of one agent. It counts with workspaceAccess overlay.
type Sync struct {
	Mode     SyncMode          `json:"mode"`
	Interval int               `json:"interval"` // seconds
	Ignore   []string          `json:"ignore,omitzero"`
	Protect  map[string]string `json:"protect,omitzero"`
	Limits   SyncLimits        `json:"limits"`
}

// SyncLimits is sandbox.sync.limits.
type SyncLimits struct {
	Files      int   `json:"files"`
	FileBytes  int64 `json:"fileBytes"`
	TotalBytes int64 `json:"totalBytes"`
}

// Words for workspaceAccess and sync.mode that stand for others.
const (
	yolo       = "yolo"        // access overlay and mode auto; as a mode, auto
	yoloUnsafe = "yolo-unsafe" // access rw
)

// AccessWords are the words for workspaceAccess.
func AccessWords() []string {
	return []string{string(AccessNone), string(AccessRO), string(AccessOverlay), string(AccessRW), yolo, yoloUnsafe}
}

func builtinOverlay() Overlay {
	return Overlay{Kind: OverlayAuto, CopyLimit: CopyLimit{Size: 2 << 30, Files: 200_000}}
}

func builtinSync() Sync {
	return Sync{Mode: SyncReview, Interval: 30, Limits: SyncLimits{Files: 1000, FileBytes: 10 << 20, TotalBytes: 100 << 20}}
}

// SetAccess sets workspaceAccess as a flag does, which may use the words yolo
// and yolo-unsafe too.
func (s *Sandbox) SetAccess(a Access) {
	s.WorkspaceAccess = a
	s.settleAccess()
}

// settleAccess replaces the words yolo and yolo-unsafe by what they stand for.
func (s *Sandbox) settleAccess() {
	switch s.WorkspaceAccess {
	case yoloUnsafe:
		s.WorkspaceAccess = AccessRW
	case yolo:
		s.WorkspaceAccess, s.Sync.Mode = AccessOverlay, SyncAuto
	}
	if s.Sync.Mode == yolo {
		s.Sync.Mode = SyncAuto
	}
}
