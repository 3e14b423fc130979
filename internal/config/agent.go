package config

// This file holds what the rest of Atoll reads: one agent's settings after the
// built-in defaults, agents.defaults and the agent's own entry were merged.
// The JSON form of Sandbox and its parts uses the key names of the file, and
// leaves out what is unset: Docker in that form is an input of the config hash.

// Mode says which sessions are sandboxed.
type Mode string

// The modes of sandbox.mode.
const (
	ModeOff     Mode = "off"
	ModeNonMain Mode = "non-main"
	ModeAll     Mode = "all"
)

// Scope says who shares a sandbox.
type Scope string

// The scopes of sandbox.scope.
const (
	ScopeSession Scope = "session"
	ScopeAgent   Scope = "agent"
	ScopeShared  Scope = "shared"
)

// Access says how much of the agent workspace a sandbox sees.
type Access string

// The values of sandbox.workspaceAccess.
const (
	AccessNone    Access = "none"
	AccessRO      Access = "ro"
	AccessOverlay Access = "overlay"
	AccessRW      Access = "rw"
)

// Agent is the configuration of one agent, fully resolved.
type Agent struct {
	ID            string  `json:"id"`
	Default       bool    `json:"default"`   // the agent of session keys that name none
	Workspace     string  `json:"workspace"` // absolute host path of the agent workspace
	SkipBootstrap bool    `json:"skipBootstrap,omitzero"`
	HostTools     bool    `json:"hostTools"` // tools.host: an unsandboxed session may use exec and file tools on the host
	Sandbox       Sandbox `json:"sandbox"`
	// Tools are the lists for sandboxed sessions, AllTools those for every
	// session; a tool must pass both.
	Tools    ToolLists   `json:"tools"`
	AllTools ToolLists   `json:"allTools"`
	Skills   []string    `json:"skills,omitzero"` // names of the skills this agent may use; nil means all
	Model    ModelChoice `json:"model,omitzero"`
	LLM      AgentLLM    `json:"llm"`
	// Origins tells for every resolved value, by its path below the agent
	// ("sandbox.docker.image"), which level gave it.
	Origins map[string]Origin `json:"origins,omitzero"`
}

// Origin is where a resolved value came from.
type Origin struct {
	Source string `json:"source"`         // "agent", "global", "default", "derived" or "project"
	Path   string `json:"path,omitempty"` // field path in the file, e.g. agents.list[0].sandbox.docker.image
	Line   int    `json:"line,omitzero"`  // 1-based; 0 for built-in defaults
}

// Sandbox is sandbox.* of one agent.
type Sandbox struct {
	Mode                   Mode     `json:"mode"`
	Scope                  Scope    `json:"scope"`
	Backend                string   `json:"backend"` // "auto" unless configured
	WorkspaceAccess        Access   `json:"workspaceAccess"`
	WorkspaceRoot          string   `json:"workspaceRoot"` // absolute
	SessionToolsVisibility string   `json:"sessionToolsVisibility"`
	NetworkAllow           []string `json:"networkAllow,omitzero"`
	NetworkExecAllow       []string `json:"networkExecAllow,omitzero"`
	AllowSecretEnv         []string `json:"dangerouslyAllowSecretEnv,omitzero"`
	Overlay                Overlay  `json:"overlay,omitzero"`
	Sync                   Sync     `json:"sync,omitzero"`
	Egress                 Egress   `json:"egress"`
	Docker                 Docker   `json:"docker"`
	Browser                Browser  `json:"browser"`
	Prune                  Prune    `json:"prune"`
}

// Docker is sandbox.docker.* of one agent. Every runtime honours what has a
// meaning for it and refuses the rest by name.
type Docker struct {
	Image           string            `json:"image"`
	ContainerPrefix string            `json:"containerPrefix"`
	Workdir         string            `json:"workdir"`
	ReadOnlyRoot    bool              `json:"readOnlyRoot"`
	Tmpfs           []string          `json:"tmpfs"`
	Network         string            `json:"network"`
	User            string            `json:"user,omitempty"` // "" until derived from the workspace owner
	CapDrop         []string          `json:"capDrop"`
	Env             map[string]string `json:"env,omitzero"`
	SetupCommand    string            `json:"setupCommand,omitempty"`
	PidsLimit       int64             `json:"pidsLimit,omitzero"`
	Memory          Size              `json:"memory,omitzero"`
	MemorySwap      Size              `json:"memorySwap,omitzero"`
	CPUs            float64           `json:"cpus,omitzero"`
	BlkioWeight     int64             `json:"blkioWeight,omitzero"`
	DeviceReadBps   Size              `json:"deviceReadBps,omitzero"`
	DeviceWriteBps  Size              `json:"deviceWriteBps,omitzero"`
	DeviceReadIOps  int64             `json:"deviceReadIOps,omitzero"`
	DeviceWriteIOps int64             `json:"deviceWriteIOps,omitzero"`
	StorageOpt      map[string]Size   `json:"storageOpt,omitzero"`
	WorkspaceLimit  map[string]Size   `json:"workspaceLimit,omitzero"`
	GPUs            string            `json:"gpus,omitempty"`
	Ulimits         map[string]Ulimit `json:"ulimits,omitzero"`
	SeccompProfile  string            `json:"seccompProfile,omitempty"`
	AppArmorProfile string            `json:"apparmorProfile,omitempty"`
	DNS             []string          `json:"dns,omitzero"`
	ExtraHosts      []string          `json:"extraHosts,omitzero"`
	Binds           []string          `json:"binds,omitzero"`

	// The overrides. None of them opens a blocked path.
	AllowReservedTargets bool `json:"dangerouslyAllowReservedContainerTargets,omitzero"`
	AllowExternalSources bool `json:"dangerouslyAllowExternalBindSources,omitzero"`
	AllowNamespaceJoin   bool `json:"dangerouslyAllowContainerNamespaceJoin,omitzero"`
}

// Prune is sandbox.prune.* of one agent; 0 switches a limit off.
type Prune struct {
	IdleHours  int `json:"idleHours"`
	MaxAgeDays int `json:"maxAgeDays"`
}

// ToolLists are tool lists as written on the two levels: tools.sandbox.tools.*
// or tools.*.
type ToolLists struct {
	Agent  ToolList `json:"agent"`
	Global ToolList `json:"global"`
	// Project has the tools that a project's file denies, which is not trusted.
	Project ToolList `json:"project,omitzero"`
}

// ToolList is one level's lists. A nil list was not written; an empty one was.
type ToolList struct {
	Allow     []string `json:"allow,omitzero"`
	AlsoAllow []string `json:"alsoAllow,omitzero"`
	Deny      []string `json:"deny,omitzero"`
}
