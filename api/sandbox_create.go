package api

import "time"

// CreateSandbox says what sandbox is made. What is left out is as the gateway's
// configuration has it for agent api.
type CreateSandbox struct {
	Image          string            `json:"image,omitempty" doc:"What its root is made of: the name of an image that the gateway has, or host for the programs of its machine."`
	Template       string            `json:"template,omitempty" doc:"Name of a snapshot whose files it begins with; env, limits and image are those of the template unless named here."`
	Workspace      *SandboxWorkspace `json:"workspace,omitempty" doc:"What the workspace begins with; nothing if left out."`
	Egress         *SandboxEgress    `json:"egress,omitempty" doc:"Which names outside it reaches; as the operator has configured it if left out."`
	Limits         *SandboxLimits    `json:"limits,omitempty" doc:"A token that is bound to an account may not go above those of the gateway's configuration."`
	Env            map[string]string `json:"env,omitempty" doc:"Environment of every command."`
	Workdir        string            `json:"workdir,omitempty" doc:"Where the workspace is inside, HOME of its commands: an absolute path; that of the gateway's configuration if left out."`
	Metadata       map[string]string `json:"metadata,omitempty" doc:"At most 64 texts of the caller's own, to find it by."`
	TimeoutSeconds int64             `json:"timeoutSeconds,omitzero" min:"1" max:"2592000" doc:"From now to its deadline; 300 if left out."`
	OnDeadline     string            `json:"onDeadline,omitempty" enum:"remove|stop" doc:"What becomes of it at its deadline; remove if left out."`
	Account        string            `json:"account,omitempty" doc:"Billing account; a bound token's own."`
}

// SandboxWorkspace is what the workspace of a sandbox begins with: the files of a git
// repository, which is cloned inside the sandbox. A directory of the caller's machine is
// sent with writeArchive.
type SandboxWorkspace struct {
	Git   string `json:"git,omitempty" doc:"URL of the repository: https:// without a name and a password. A token that is bound to an account reaches only servers that the operator allows."`
	Ref   string `json:"ref,omitempty" doc:"Branch or tag; the repository's own if left out."`
	Depth int64  `json:"depth,omitzero" min:"1" max:"2147483647" doc:"Commits of history; 1 if left out."`
}

// SandboxEgress are the names outside that a sandbox reaches.
type SandboxEgress struct {
	Allow []string `json:"allow" doc:"Rules: NAME, NAME:PORT, *.NAME, preset:NAME, or an object of sandbox.egress.allow as text. None reaches nothing. A token that is bound to an account may only name what the operator's own rules allow."`
}

// SandboxMetrics are what a sandbox uses, as its runtime counts it.
type SandboxMetrics struct {
	At                  time.Time `json:"at"`
	CPUMs               int64     `json:"cpuMs" doc:"CPU time of its processes since it was started."`
	CPUs                float64   `json:"cpus,omitzero" doc:"The limit of processors, if there is one, as are the other limits."`
	MemoryBytes         int64     `json:"memoryBytes" doc:"Caches that can be dropped are left out."`
	MemoryLimitBytes    int64     `json:"memoryLimitBytes,omitzero"`
	Processes           int64     `json:"processes" doc:"Processes and threads."`
	ProcessesLimit      int64     `json:"processesLimit,omitzero"`
	WorkspaceBytes      int64     `json:"workspaceBytes" doc:"In files of the workspace."`
	WorkspaceLimitBytes int64     `json:"workspaceLimitBytes,omitzero"`
	WorkspaceFiles      int64     `json:"workspaceFiles" doc:"Files, directories and links in the workspace."`
	WorkspaceFilesLimit int64     `json:"workspaceFilesLimit,omitzero"`
	WorkspaceMore       bool      `json:"workspaceMore,omitzero" doc:"There is more in the workspace than was counted: of 100,000 files, or of directories that the gateway may not read."`
}

// SandboxLimits bound what a sandbox uses. A limit that the gateway cannot enforce is
// refused.
type SandboxLimits struct {
	MemoryBytes    int64   `json:"memoryBytes,omitzero" min:"1" doc:"Memory of all its processes."`
	CPUs           float64 `json:"cpus,omitzero" doc:"Processors, such as 0.5."`
	Processes      int64   `json:"processes,omitzero" min:"1" doc:"Processes and threads at once."`
	WorkspaceBytes int64   `json:"workspaceBytes,omitzero" min:"1" doc:"Bytes in the workspace."`
	WorkspaceFiles int64   `json:"workspaceFiles,omitzero" min:"1" doc:"Files in the workspace."`
}

// ForkSandbox makes a sandbox with the files of another, which runs on.
type ForkSandbox struct {
	Metadata       map[string]string `json:"metadata,omitempty"`
	TimeoutSeconds int64             `json:"timeoutSeconds,omitzero" min:"1" max:"2592000" doc:"From now to its deadline; 300 if left out."`
}

// CreateSnapshot keeps the files of a sandbox as a template. Processes and memory are
// not kept.
type CreateSnapshot struct {
	Name string `json:"name" doc:"Of the template: up to 64 of a-z, 0-9, dot, dash and underscore. A name that is taken is refused."`
}

// Template is a snapshot that sandboxes can begin with.
type Template struct {
	Name    string    `json:"name"`
	Account string    `json:"account,omitempty"`
	Created time.Time `json:"created"`
	Image   string    `json:"image,omitempty"`
}

// Templates are the templates of an account.
type Templates struct {
	Templates []Template `json:"templates"`
}

// TemplateQuery filters templates.
type TemplateQuery struct {
	Account string `query:"account" doc:"Only those of this billing account; a bound token's own."`
}

// PortTokenHeader is the header of requests to ports of a sandbox that holds its port
// token. It is not passed on.
const PortTokenHeader = "Atoll-Port-Token" //nolint:gosec // the name of a header

// ExtendSandbox moves the deadline of a sandbox.
type ExtendSandbox struct {
	TimeoutSeconds int64 `json:"timeoutSeconds" min:"1" max:"2592000" doc:"From now to its deadline."`
}
