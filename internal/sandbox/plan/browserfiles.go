package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/browserkeys"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
)

const (
	// BrowserDir holds the profiles of browsers that are kept, below the state directory.
	BrowserDir = "browsers"
	// ProfileTarget is where a browser's sandbox has its profile, if it is kept.
	ProfileTarget = "/profile"
	// ProfileSize is how many bytes a profile holds at most.
	ProfileSize = 512 << 20
	// ProfileFiles is how many files, directories and links it holds at most.
	ProfileFiles = 50_000
)

// bindsKey is what policy calls the binds that it judges.
const bindsKey = "sandbox.docker.binds"

// browserMounts judges sandbox.browser.binds as those of other sandboxes are, and returns
// what they mount; nothing if something of the plan is refused.
func (p *Plan) browserMounts(others []policy.Finding) ([]policy.Mount, error) {
	p.Findings = others
	binds := p.Agent.Sandbox.Browser.Binds
	docker := p.Agent.Sandbox.Docker
	docker.Binds, docker.Workdir = binds, BrowserHome
	for _, f := range policy.Validate(docker, p.host) {
		if rest, ok := strings.CutPrefix(f.Field, bindsKey); ok && len(binds) > 0 {
			f.Field = "sandbox.browser.binds" + rest
			p.Findings = append(slices.Clip(p.Findings), f)
		}
	}
	if p.Refusal() != nil {
		return nil, nil
	}
	mounts, err := policy.BindMounts(binds)
	for _, m := range mounts {
		canonical, err := hostpath.Disk{}.Canonical(m.Source)
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.Target, err)
		}
		p.canonical = append(p.canonical, canonical)
	}
	return mounts, err
}

// browserScope returns the key of those who share a browser: each session has its own,
// because cookies would cross, unless the profile is kept for the agent, or for all who
// share its sandbox.
func (p *Plan) browserScope() string {
	switch box := &p.Agent.Sandbox; {
	case box.Browser.Profile != browserkeys.ProfileAgent:
		return policy.ScopeKey(config.ScopeSession, p.Session, p.Spec.Account)
	case box.Scope != config.ScopeShared:
		return policy.ScopeKey(config.ScopeAgent, p.Session, p.Spec.Account)
	}
	return p.ScopeKey
}

// browserAgentID returns the agent that the browser of a scope is listed for.
func (p *Plan) browserAgentID(scopeKey string) string {
	if policy.ScopeIsShared(scopeKey) {
		return p.Spec.AgentID
	}
	return p.Agent.ID
}

// keepsProfile reports whether cookies and storage are kept after the browser.
func (p *Plan) keepsProfile() bool {
	return p.Agent.Sandbox.Browser.Profile != browserkeys.ProfileEphemeral
}

// ProfileDir returns the directory of the host that has the profile of a scope's browser.
// The key of a scope has the account in it.
func ProfileDir(state, scopeKey string) string {
	return filepath.Join(state, BrowserDir, policy.DirName(scopeKey))
}

// keepProfile mounts the directory of the profile, if it is kept.
func (p *Plan) keepProfile() error {
	if !p.keepsProfile() {
		return nil
	}
	dir := ProfileDir(p.state, p.ScopeKey)
	canonical, err := hostpath.Disk{}.Canonical(dir)
	if err != nil {
		return fmt.Errorf("the browser's profile: %w", err)
	}
	p.canonical = append(p.canonical, canonical)
	p.Spec.Mounts = append(p.Spec.Mounts, sandbox.Mount{Source: dir, Target: ProfileTarget, Kind: sandbox.MountProfile, Enclosed: true})
	p.Spec.Limits.Workspace = sandbox.WorkspaceQuota{Size: ProfileSize, Files: ProfileFiles, Reserve: CopyReserve}
	return nil
}

// Profile returns where the browser's sandbox of the plan has its profile; "" if it is not
// kept.
func (p *Plan) Profile() string {
	if p.keepsProfile() {
		return ProfileTarget
	}
	return ""
}
