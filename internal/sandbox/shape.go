package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/version"
)

// PoolHostname is what sandboxes that may come out of a pool are called inside. They are
// made before their names are known, and the kernel's name of a sandbox stays as it is.
const PoolHostname = "sandbox"

// Shape returns the hash of everything in spec that a sandbox is made with before it is
// known whose it is. Sandboxes of one shape differ only in what they get later: the
// name, the scope key, the environment of commands and the content of the workspace.
// Another release of Atoll makes other shapes: its guest may be another.
func Shape(spec *Spec) string {
	s := anonymous(spec)
	s.Kind = ""
	for i := range s.Mounts {
		s.Mounts[i].Device, s.Mounts[i].Inode = 0, 0
		if s.Mounts[i].Kind == MountWorkspace {
			s.Mounts[i].Source, s.Mounts[i].Base = "", ""
		}
	}
	text, err := json.Marshal(struct {
		Release string
		Spec    *Spec
	}{version.Current().Version, s}, json.Deterministic(true)) // which writes no list as an empty one
	if err != nil { // a Spec holds nothing that cannot be written
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// anonymous returns spec without what says whose sandbox it is.
func anonymous(spec *Spec) *Spec {
	s := *spec
	s.Name, s.ScopeKey, s.AgentID, s.Account, s.ConfigHash, s.MountsHash = "", "", "", "", "", ""
	s.Exact, s.ReplaceIdle, s.Settings, s.TrustedRoots, s.Claim = false, false, nil, "", nil
	s.Mounts, s.Env = slices.Clone(spec.Mounts), nil
	return &s
}

// PoolSpec returns the spec of a sandbox for the pool of an agent: that of any of its
// shape, under a name of its own, with an empty directory of the host as its workspace.
func PoolSpec(spec *Spec, name, workspace string) *Spec {
	s := anonymous(spec)
	s.Name, s.Kind, s.ConfigHash, s.ScopeKey, s.AgentID = name, KindPool, Shape(spec), "pool:"+name, spec.AgentID
	for i := range s.Mounts {
		if s.Mounts[i].Kind == MountWorkspace && s.Mounts[i].Source != workspace {
			s.Mounts[i].Source, s.Mounts[i].Device, s.Mounts[i].Inode = workspace, 0, 0
		}
	}
	return s
}

// A Pooler is a runtime that cannot make every sandbox ahead of its name.
type Pooler interface {
	// Unpoolable returns why a sandbox of spec cannot wait in a pool; "" if it can.
	Unpoolable(spec *Spec) string
}

// Unpoolable returns why a sandbox of spec cannot wait in a pool; "" if it can.
func (m *Manager) Unpoolable(ctx context.Context, spec *Spec) (string, error) {
	if why := Unpoolable(spec); why != "" {
		return why, nil
	}
	rt, err := m.Runtime(ctx, spec.Backend)
	if err != nil {
		return "", err
	}
	if p, ok := rt.(Pooler); ok {
		if why := p.Unpoolable(spec); why != "" {
			return why, nil
		}
	}
	own, err := m.hasOwnRoots(spec)
	if own {
		return "its programs trust a certificate that is made for each sandbox (a rule of egress opens TLS)", err
	}
	return "", err
}

// hasOwnRoots reports whether the programs of a sandbox are to trust certificates that are
// made for it alone.
func (m *Manager) hasOwnRoots(spec *Spec) (bool, error) {
	if m.TrustedRoots == nil {
		return false, nil
	}
	path, err := m.TrustedRoots(spec)
	return path != "", err
}

// Unpoolable returns why a sandbox of spec cannot wait in a pool, whatever its runtime;
// "" if it can.
func Unpoolable(spec *Spec) string {
	switch {
	case spec.IsBrowser():
		return "a browser has a profile of its own"
	case spec.NetworkedHalf:
		return "it is half of a network pair"
	case strings.HasPrefix(spec.Network, "container:"):
		return "it is in the network of another container"
	case spec.Host() == spec.Name:
		return "it is called by its own name inside"
	case spec.SetupCommand != "":
		return "its set-up command may read the workspace, which is filled later"
	}
	for _, m := range spec.Mounts {
		switch {
		case m.Overlay != nil || m.Base != "":
			return "it keeps its changes of " + m.Target + " apart in an overlay of its own"
		case m.Kind == MountWorkspace && !m.Enclosed:
			return "it works in a directory of the host itself, not in a private copy"
		}
	}
	return ""
}
