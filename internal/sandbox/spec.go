package sandbox

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// Spec describes one sandbox completely. It is made by package plan from the
// configuration, the session and facts about the host; a runtime adds nothing
// to it and ignores nothing in it: what it cannot enforce it reports in Check.
type Spec struct {
	Name       string // container name, at most 63 bytes
	Kind       Kind   // "" is KindSandbox; a browser has a filter of its own, one of a pool no identity yet
	ScopeKey   string // who shares it; label openclaw.sessionKey
	AgentID    string
	Account    string // billing account, "" where there is none
	Backend    string // "docker", "podman", "linux", …
	ConfigHash string
	MountsHash string // of Mounts alone: a hot sandbox with other mounts is refused, not reused
	// Exact refuses a hot sandbox with another configuration too: the caller asked
	// for this one by the flags of a command, not by a file that changed.
	Exact bool
	// ReplaceIdle recreates a sandbox with another configuration as soon as it is
	// not in use, also if it was a moment ago: all that is worth keeping is mounted.
	ReplaceIdle bool
	// Settings are what ConfigHash is made of, by key, as text. They are kept with
	// the row of the sandbox, to report what changed; nil if that is not needed.
	Settings map[string]string `json:"-"`
	// Temporary says that the private copy of the workspace ends with the sandbox.
	Temporary bool `json:"-"`
	// MaxAgeSec is how old the sandbox may get, in seconds; 0 is no limit. Prune removes it then; machinery
	// that outlives the gateway ends it by itself a while later.
	MaxAgeSec int64

	Image        string
	Hostname     string // "" is Name
	Workdir      string
	User         string // "uid:gid", or "" for the image's user
	Env          map[string]string
	SetupCommand string // run once by a login shell after the first start

	ReadOnlyRoot    bool
	Tmpfs           []Tmpfs
	ShmSize         int64 // bytes that /dev/shm holds; 0 is DefaultShmSize
	Mounts          []Mount
	Volumes         []Volume
	Network         string // "none", "bridge", a network's name, "container:<id>"
	NetworkedHalf   bool   // of two sandboxes it is the one with a network, or with egress
	DNS             []string
	ExtraHosts      []string // "name:address"
	CapDrop         []string
	SeccompProfile  string // host path of a profile; "" means Atoll's own
	AppArmorProfile string
	GPUs            string
	Limits          Limits
	// NoBrowserSandbox is a browser without Chromium's own sandbox: its filter is that of
	// every other sandbox.
	NoBrowserSandbox bool
	// TrustedRoots is a file of the host with the certificates that programs inside are
	// to trust; "" are those of the image. The manager sets it.
	TrustedRoots string
	// Claim is a sandbox that was taken out of a pool, to be used in the place of a new
	// one; nil is none.
	Claim *Claim `json:"-"`
}

// DefaultShmSize is what /dev/shm holds, as with every container engine.
const DefaultShmSize = 64 << 20

// RootsTarget is where the systems of images keep the certificates that they trust.
const RootsTarget = "/etc/ssl/certs/ca-certificates.crt"

// IsBrowser reports whether the sandbox is a browser's.
func (s *Spec) IsBrowser() bool { return s.Kind == KindBrowser }

// OpensNamespaces reports whether programs inside may make the namespaces of Chromium's
// own sandbox.
func (s *Spec) OpensNamespaces() bool { return s.IsBrowser() && !s.NoBrowserSandbox }

// Host is what the sandbox is called inside.
func (s *Spec) Host() string { return cmp.Or(s.Hostname, s.Name) }

// Sources are the directories of the host that are mounted: those a sandbox is
// for, and what was bound besides.
func (s *Spec) Sources() (own, bound []string) {
	for _, m := range s.Mounts {
		if m.Kind == MountBind || m.Kind == MountProgram {
			bound = append(bound, m.Source)
		} else {
			own = append(own, m.Source)
		}
	}
	return own, bound
}

// WritesHost reports whether the sandbox can write to a directory of the host. A
// volume counts: its driver may keep it in any directory.
func (s *Spec) WritesHost() bool {
	return slices.ContainsFunc(s.Mounts, func(m Mount) bool { return !m.ReadOnly }) ||
		slices.ContainsFunc(s.Volumes, func(v Volume) bool { return !v.ReadOnly })
}

// WritesShared reports whether the sandbox can write to a directory of the host
// that other users may enter: not a private copy in the state directory, nor the
// private layer of a volume, which the engine keeps to itself.
func (s *Spec) WritesShared() bool {
	return slices.ContainsFunc(s.Mounts, func(m Mount) bool { return !m.ReadOnly && !m.Enclosed }) ||
		slices.ContainsFunc(s.Volumes, func(v Volume) bool { return !v.ReadOnly && !v.Private })
}

// Limits are the resources a sandbox may use. Zero means no limit was asked.
type Limits struct {
	Pids       int64
	Memory     int64 // bytes
	MemorySwap int64 // bytes of memory and swap together; -1 is unlimited swap
	CPUs       float64
	IO         IO
	Storage    Storage
	Workspace  WorkspaceQuota
	Ulimits    []Ulimit
	Defaults   Defaults // of what was not asked for
}

// IO limits reading and writing of each disk that the sandbox's files are on.
type IO struct {
	Weight              int64 // a share beside others, from 10 to 1000
	ReadBps, WriteBps   int64 // bytes a second
	ReadIOps, WriteIOps int64 // requests a second
}

// Valid reports whether the numbers can be meant.
func (l IO) Valid() bool {
	const least, most = 10, 1000
	return l.ReadBps >= 0 && l.WriteBps >= 0 && l.ReadIOps >= 0 && l.WriteIOps >= 0 && (l.Weight == 0 || l.Weight >= least && l.Weight <= most)
}

// Storage limits what a root that may be changed can hold besides its image.
type Storage struct {
	Size   int64 // bytes
	Inodes int64 // files, directories and links
}

// Valid reports whether the numbers can be meant.
func (s Storage) Valid() bool { return s.Size >= 0 && s.Inodes >= 0 }

// WorkspaceQuota limits what a workspace may hold that the sandbox can write to. It is on
// the host's disk, so the guest measures it, and ends what makes it grow beyond.
type WorkspaceQuota struct {
	Size    int64 // bytes
	Files   int64 // files, directories and links
	Reserve int64 // bytes that must stay free on its disk
}

// AddBegun raises the limits by what a workspace held before the sandbox was made.
func (r *WorkspaceQuota) AddBegun(bytes, files int64) {
	if r.Size > 0 {
		r.Size += bytes
	}
	if r.Files > 0 {
		r.Files += files
	}
}

// Valid reports whether the numbers can be meant.
func (r WorkspaceQuota) Valid() bool { return r.Size >= 0 && r.Files >= 0 && r.Reserve >= 0 }

// ChangesTarget is where the guest sees what is above the base of the mount with
// this index, an overlay, read-only: it measures that.
func ChangesTarget(index int) string { return "/.atoll/changes/" + strconv.Itoa(index) }

// QuotaArguments tell the guest what to keep the workspace to, together with
// other directories of the host that it may write to. Nil if there is nothing
// to keep.
func (s *Spec) QuotaArguments(others ...string) []string {
	var args []string
	for i, m := range s.Mounts {
		switch {
		case m.Overlay != nil:
			args = append(args, "--quota-upper", ChangesTarget(i)+"="+m.Target)
		case (m.Kind == MountWorkspace || m.Kind == MountTree || m.Kind == MountProfile) && !m.ReadOnly:
			args = append(args, "--quota-dir", m.Target)
		}
	}
	room := s.Limits.Workspace
	if args == nil || room == (WorkspaceQuota{}) {
		return nil
	}
	for _, dir := range others {
		args = append(args, "--quota-dir", dir)
	}
	return append(args, "--quota-size", strconv.FormatInt(room.Size, 10), "--quota-files", strconv.FormatInt(room.Files, 10),
		"--quota-reserve", strconv.FormatInt(room.Reserve, 10))
}

// Ulimit is one resource limit of every process inside.
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// Tmpfs is a temporary filesystem inside.
type Tmpfs struct {
	Target  string
	Options string // "size=64m,mode=1777", "" for the runtime's defaults
}

// MountKind says why a host directory is mounted.
type MountKind string

// The kinds of mount.
const (
	MountWorkspace MountKind = "workspace"
	MountAgent     MountKind = "agent"
	MountTree      MountKind = "tree" // of overlay.more
	MountGit       MountKind = "git"  // the repository of the workspace, if it lies outside
	MountBind      MountKind = "bind"
	MountProfile   MountKind = "profile" // of a browser: its cookies and storage
	MountProgram   MountKind = "program" // of a run: what its agent executes, read-only
)

// Mount is a host path made visible inside.
type Mount struct {
	Source   string    `json:"source"`
	Target   string    `json:"target"`
	ReadOnly bool      `json:"readOnly"`
	Kind     MountKind `json:"kind"`
	// Enclosed says that what is written lies in the state directory, which no
	// other user of the host can enter.
	Enclosed bool `json:"enclosed,omitempty"`
	// Overlay keeps what is written apart from Source, which stays as it is. Nil
	// mounts Source itself.
	Overlay *OverlayMount `json:"overlay,omitempty"`
	// Base is the directory that Source is a copy of; "" if it is none.
	Base string `json:"base,omitempty"`
	// Relabel asks for an SELinux label, shared ("z") or private ("Z"); a host
	// without SELinux has nothing to label.
	Relabel string `json:"-"`
	// Device and Inode identify the source that was checked, so that a runtime
	// can refuse a path that was exchanged since. Zero means not checked.
	Device uint64 `json:"-"`
	Inode  uint64 `json:"-"`
}

// OverlayMount is a kernel overlay with the mount's source below.
type OverlayMount struct {
	Dir   string        `json:"dir"`   // holds the directories upper and work, and package overlay's record
	Marks overlay.Marks `json:"marks"` // where the kernel keeps what it notes of files
	// Volatile leaves out syncing. A mount that did not end well is then refused
	// by the kernel until package overlay has looked at it.
	Volatile bool `json:"volatile,omitempty"`
}

// Volume is storage that the engine owns, or the directory Target of an image that
// the linux backend has.
type Volume struct {
	Name     string // the engine's, or the image's id
	Target   string
	ReadOnly bool
	// Private gives the sandbox a layer of its own to write to, which goes with
	// it: the volume itself stays as it is, for all that share it.
	Private bool
}

// BrowserEpoch is the version of OpenClaw's rules for browsers that ours are made by.
const BrowserEpoch = "2026-05-12-cdp-relay-auth"

// The labels every sandbox carries. The first five are OpenClaw's, so that its
// users find what they know; Installation is the one that decides ownership.
const (
	LabelSandbox      = "openclaw.sandbox"
	LabelSessionKey   = "openclaw.sessionKey"
	LabelCreatedAtMs  = "openclaw.createdAtMs"
	LabelConfigHash   = "openclaw.configHash"
	LabelBrowser      = "openclaw.sandboxBrowser" // "1" if it is a browser's
	LabelBrowserEpoch = "openclaw.browserConfigEpoch"
	LabelInstallation = "atoll.installation"
	LabelAgent        = "atoll.agent"
	LabelAccount      = "atoll.account"
	LabelMountsHash   = "atoll.mountsHash"
	LabelWorkspace    = "atoll.workspace" // host directory it works in
	LabelSetup        = "atoll.setup"     // "1" if a setup command belongs to its creation
	LabelPool         = "atoll.pool"      // "1" if it was made for a pool
)
