package policy

import (
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/config"
)

// AgentTarget is where a sandbox sees the agent workspace with access "ro".
const AgentTarget = "/agent"

// InternalTarget holds Atoll's own files inside every sandbox. Nothing that is
// configured may take its place.
const InternalTarget = "/.atoll"

// MountKind says why a host path is mounted.
type MountKind string

// The kinds of mount.
const (
	MountWorkspace MountKind = "workspace"
	MountAgent     MountKind = "agent"
	MountTree      MountKind = "tree" // of overlay.more
	MountGit       MountKind = "git"  // the repository of the workspace, if it lies outside
	MountBind      MountKind = "bind"
)

// Mount is a host path made visible inside a sandbox. Both paths are normalised.
type Mount struct {
	Source   string
	Target   string
	ReadOnly bool
	Kind     MountKind
	Relabel  string // SELinux: "", "z" (shared) or "Z" (private)
	// Overlay keeps what is written apart from Source.
	Overlay bool
}

// MountRequest is what decides the mounts of a sandbox.
type MountRequest struct {
	Access  config.Access
	Workdir string   // docker.workdir
	Copy    string   // host directory of the sandbox's own copy of the workspace
	Agent   string   // host directory of the agent workspace
	Binds   []string // docker.binds, validated
	More    []config.OverlayTree
	Git     config.OverlayTree // the repository of the workspace; zero if it lies inside
}

// PlanMounts lists what a sandbox sees of the host:
//
//	access  workdir               /agent
//	none    the copy              nothing
//	ro      the copy, read-only   the agent workspace, read-only
//	overlay the agent workspace   nothing; what is written is kept apart
//	rw      the agent workspace   nothing: it is the same directory
//
// then with overlay the trees of overlay.more, and then the binds. Of several mounts for one target the last stays, so a
// bind that was allowed to take a reserved target replaces what belongs there.
func PlanMounts(r MountRequest) ([]Mount, error) {
	mounts, err := workspaceMounts(r)
	if err != nil {
		return nil, err
	}
	binds, err := BindMounts(r.Binds)
	return lastMounts(append(mounts, binds...)), err
}

// BindMounts lists what binds make visible; of several for one target the last stays.
func BindMounts(binds []string) (mounts []Mount, err error) {
	for _, spec := range binds {
		bind, ok := SplitBind(spec)
		if !ok {
			return nil, fmt.Errorf("bind %q: has no target", spec)
		}
		mounts = append(mounts, Mount{
			Source:   NormalizePath(bind.Source),
			Target:   NormalizePath(bind.Target),
			ReadOnly: bind.ReadOnly(),
			Kind:     MountBind,
			Relabel:  bind.relabel(),
		})
	}
	return lastMounts(mounts), nil
}

func workspaceMounts(r MountRequest) ([]Mount, error) {
	workdir := NormalizePath(r.Workdir)
	own := Mount{Source: NormalizePath(r.Copy), Target: workdir, Kind: MountWorkspace}
	agent := Mount{Source: NormalizePath(r.Agent), Target: AgentTarget, ReadOnly: true, Kind: MountAgent}
	switch r.Access {
	case config.AccessNone:
		return []Mount{own}, nil
	case config.AccessRO:
		own.ReadOnly = true
		return []Mount{own, agent}, nil
	case config.AccessRW:
		own.Source = agent.Source
		return []Mount{own}, nil
	case config.AccessOverlay:
		own.Source, own.Overlay = agent.Source, true
		return slices.Concat([]Mount{own}, gitMount(r.Git), overlayMounts(r.More)), nil
	}
	return nil, fmt.Errorf("sandbox.workspaceAccess %q: not one of none, ro, overlay, rw", r.Access)
}

func gitMount(tree config.OverlayTree) []Mount {
	if tree.Source == "" {
		return nil
	}
	return []Mount{{Source: NormalizePath(tree.Source), Target: NormalizePath(tree.Target), Kind: MountGit, Overlay: true}}
}

func overlayMounts(trees []config.OverlayTree) (mounts []Mount) {
	for _, tree := range trees {
		mounts = append(mounts, Mount{Source: NormalizePath(tree.Source), Target: NormalizePath(tree.Target), Kind: MountTree, Overlay: true})
	}
	return mounts
}

func lastMounts(mounts []Mount) []Mount {
	return lastPerTarget(mounts, func(m Mount) string { return m.Target })
}
