package plan

import (
	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
)

// Repository returns how the sandbox sees the workspace and the repositories in
// it; nil unless the workspace is an overlay.
func (p *Plan) Repository() *checkout.Inside { return p.repository }

// findRepository finds the repository of an overlay workspace.
func (p *Plan) findRepository(Request) error {
	if box := &p.Agent.Sandbox; box.WorkspaceAccess == config.AccessOverlay {
		p.repository = checkout.InsideOf(p.Layout.AgentDir, policy.NormalizePath(box.Docker.Workdir))
	}
	return nil
}

// gitTree is the repository of a linked work tree or a submodule, which lies
// outside of the workspace; the zero value if there is none.
func (p *Plan) gitTree() config.OverlayTree {
	if p.repository == nil {
		return config.OverlayTree{}
	}
	dir, target := p.repository.GitTree()
	return config.OverlayTree{Source: dir, Target: target}
}

// checkRepository refuses a repository outside of the workspace that could not be
// a workspace itself.
func (p *Plan) checkRepository(host policy.Host) []policy.Finding {
	tree := p.gitTree()
	if tree.Source == "" {
		return nil
	}
	return policy.ValidateWorkspace(tree.Source, host)
}
