package profile

import "github.com/atoll-run/atoll/internal/config/vmkeys"

// Where directories are inside the virtual machine.
const (
	ProjectPoint   = "/mnt/openclaw"
	ProvisionPoint = "/mnt/provision"
	VaultPoint     = "/mnt/obsidian"
	ConfigPoint    = "/mnt/openclaw-config"
	AgentsPoint    = "/mnt/openclaw-agents"
	BuildlogPoint  = "/mnt/buildlog-data"
	SkillsPoint    = "/mnt/skills-custom"
)

// Where the work on an overlay is inside the virtual machine.
const (
	WorkspaceDir      = "/workspace"
	VaultWorkspaceDir = "/workspace-obsidian"
	OverlayDir        = "/var/lib/openclaw/overlay/openclaw"
	VaultOverlayDir   = "/var/lib/openclaw/overlay/obsidian"
)

// Mount is a directory of this machine that the virtual machine sees.
type Mount struct {
	Key      string `json:"key"`    // in vm.profiles.NAME.mounts
	Source   string `json:"source"` // absolute
	Point    string `json:"point"`
	Writable bool   `json:"writable"`
}

// written is a directory of a profile as it was written, and its place.
type written struct {
	key, source, point string
	writable           bool
}

// table returns every directory that a profile may name, in the order of the documents.
func table(p *vmkeys.Profile) []written {
	direct := p.Mode == vmkeys.ModeDirect
	m := p.Mounts
	return []written{
		{"project", m.Project, ProjectPoint, direct},
		{"provision", m.Provision, ProvisionPoint, false},
		{"vault", m.Vault, VaultPoint, direct},
		{"config", m.Config, ConfigPoint, direct},
		{"agentData", m.AgentData, AgentsPoint, true},
		{"buildlogData", m.BuildlogData, BuildlogPoint, true},
		{"skills", m.Skills, SkillsPoint, false},
	}
}

// Workspace returns the directory inside that the gateway and all services work in.
func Workspace(p *vmkeys.Profile) string {
	if p.Mode == vmkeys.ModeDirect {
		return ProjectPoint
	}
	return WorkspaceDir
}
