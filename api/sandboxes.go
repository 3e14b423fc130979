package api

import "time"

// Sandbox is one sandbox of the installation. Members are those of `atoll sandbox
// list --json`.
type Sandbox struct {
	ContainerName string `json:"containerName"`
	SessionKey    string `json:"sessionKey" doc:"Its scope key: which sessions share it."`
	CreatedAtMs   int64  `json:"createdAtMs"`
	LastUsedAtMs  int64  `json:"lastUsedAtMs"`
	LastSavedAtMs int64  `json:"lastSavedAtMs,omitzero" doc:"When the workspace of a sandbox on another machine was last brought home; absent if never, or if it is on the gateway's own."`
	Image         string `json:"image"`
	ConfigHash    string `json:"configHash,omitempty"`
	Kind          string `json:"kind" enum:"sandbox|browser"`
	Phase         string `json:"phase"`
	Backend       string `json:"backend"`
	AgentID       string `json:"agentId"`
	Account       string `json:"account,omitempty"`
	WorkspaceDir  string `json:"workspaceDir,omitempty" doc:"On the host; only for callers that are bound to no account."`
	CDPPort       int    `json:"cdpPort,omitzero"`
	NoVNCPort     int    `json:"noVncPort,omitzero"`
	Imported      bool   `json:"imported,omitzero"`
	State         string `json:"state" doc:"Empty if it is gone, or its engine does not answer."`
	Running       bool   `json:"running"`
	Problem       string `json:"problem,omitempty"`
	InUse         bool   `json:"inUse,omitempty" doc:"A command or an agent works in it."`
	ImageMatch    bool   `json:"imageMatch" doc:"It was made from the image that is configured now."`
	Drift         *Drift `json:"drift,omitempty"`

	// What only a sandbox has that a program made.
	ID         string            `json:"id,omitempty" doc:"What its paths are called by; only of a sandbox that a program made, as are the members that follow."`
	Deadline   time.Time         `json:"deadline,omitzero"`
	OnDeadline string            `json:"onDeadline,omitempty" enum:"remove|stop"`
	Template   string            `json:"template,omitempty" doc:"That it began with."`
	Metadata   map[string]string `json:"metadata,omitempty"`
	Workdir    string            `json:"workdir,omitempty" doc:"Directory of commands that name none, and where relative paths begin."`
	PortToken  string            `json:"portToken,omitempty" doc:"For requests to its ports, in the header Atoll-Port-Token, at the host name PORT-ID before a name of the gateway, such as 8000-ID.localhost. Only for tokens that may run commands."`
}

// Drift is how a private copy of a workspace differs from what it was made from.
type Drift struct {
	Modified []string `json:"modified,omitempty"`
	Deleted  []string `json:"deleted,omitempty"`
	Stale    []string `json:"stale,omitempty" doc:"The source changed since."`
}

// DriftDiffs are the behaviour files of a private copy that differ from those of the agent.
type DriftDiffs struct {
	Files []DriftDiff `json:"files"`
}

// DriftDiff is how one file differs.
type DriftDiff struct {
	Path     string `json:"path"`
	Modified bool   `json:"modified,omitzero" doc:"It was written inside."`
	Deleted  bool   `json:"deleted,omitzero" doc:"It was removed inside."`
	Stale    bool   `json:"stale,omitzero" doc:"The source changed since."`
	Diff     string `json:"diff,omitempty" doc:"Unified, from the source as it is now to the copy."`
	Note     string `json:"note,omitempty" doc:"Why there is no diff."`
}

// SandboxQuery filters sandboxes.
type SandboxQuery struct {
	Limit    int      `query:"limit" min:"1" max:"10000" doc:"At most so many; all if not given."`
	Account  string   `query:"account" doc:"Only those of this billing account."`
	Order    string   `query:"order" enum:"used|created" doc:"The last used first, or the last made first, which has pages; used if not given."`
	Cursor   string   `query:"cursor" doc:"The next of the page before; needs order=created."`
	Made     bool     `query:"made" doc:"Only those that programs made."`
	State    string   `query:"state" enum:"running|stopped|paused|created" doc:"Only those in this state."`
	Metadata []string `query:"metadata" doc:"Only those with this metadata, NAME=VALUE; several must all be there."`
}

// Sandboxes is a list of sandboxes.
type Sandboxes struct {
	Sandboxes []Sandbox `json:"sandboxes"`
	Total     int       `json:"total" doc:"How many there are that the filters let through."`
	Next      string    `json:"next,omitempty" doc:"Cursor of the next page; none if this is the last."`
}

// RecreateRequest says whether a private copy is discarded.
type RecreateRequest struct {
	Discard bool `json:"discard,omitzero" doc:"Wipe the private copy of the workspace too."`
}

// Recreated is a sandbox that was removed; its next use creates it again.
type Recreated struct {
	ContainerName string   `json:"containerName"`
	Moved         []string `json:"moved,omitempty" doc:"Files that the agent had changed, now in aside."`
	Aside         string   `json:"aside,omitempty"`
	Discarded     bool     `json:"discarded,omitzero"`
}

// PruneRequest says whether workspaces are removed too.
type PruneRequest struct {
	Workspaces bool `json:"workspaces,omitzero" doc:"Remove the private copies of what is removed too."`
}

// Pruned lists sandboxes that were removed because they were idle or old.
type Pruned struct {
	Removed []Removal `json:"removed"`
	Silent  string    `json:"silent,omitempty" doc:"Engines that did not answer, so that nothing of theirs was looked at."`
}

// Removal is one removed sandbox.
type Removal struct {
	ContainerName string `json:"containerName"`
	Reason        string `json:"reason"`
	Error         string `json:"error,omitempty"`
}

// Verification is the result of checking a live sandbox.
type Verification struct {
	Sandbox string  `json:"sandbox"`
	Backend string  `json:"backend"`
	Image   string  `json:"image"`
	OK      bool    `json:"ok"`
	Checks  []Check `json:"checks"`
}

// Verifications are the results for a sandbox and for its networked half.
type Verifications struct {
	Verified []Verification `json:"verified"`
}

// Check is one promise and its result.
type Check struct {
	Ring     string `json:"ring"`
	Name     string `json:"name"`
	Status   string `json:"status"`
	Promised string `json:"promised"`
	Found    string `json:"found"`
}

// ExplainQuery names a session, and a tool or path to decide about.
type ExplainQuery struct {
	Agent   string `query:"agent" doc:"Agent of the configuration; the default one if none is named."`
	Session string `query:"session" doc:"Session key; the agent's main session if none is named."`
	Account string `query:"account" doc:"Billing account; a bound token's own."`
	Tool    string `query:"tool" doc:"Also say whether this tool may be used."`
	Path    string `query:"path" doc:"Also say what this path is in the sandbox."`
}

// Explanation is the configuration and policy that apply to a session.
type Explanation struct {
	AgentID         string        `json:"agentId"`
	SessionKey      string        `json:"sessionKey"`
	Sandboxed       bool          `json:"sandboxed"`
	Reason          string        `json:"reason"`
	Mode            string        `json:"mode"`
	Scope           string        `json:"scope"`
	ScopeKey        string        `json:"scopeKey"`
	ContainerName   string        `json:"containerName"`
	Image           string        `json:"image"`
	Network         string        `json:"network"`
	WorkspaceAccess string        `json:"workspaceAccess"`
	Refused         []string      `json:"refused,omitempty" doc:"What the policy refuses: nothing is made while there is any."`
	Tool            *ToolDecision `json:"tool,omitempty"`
	Path            *PathDecision `json:"path,omitempty"`
}

// ToolDecision says whether a tool may be used.
type ToolDecision struct {
	Name    string   `json:"name"`
	Allowed bool     `json:"allowed"`
	Reason  string   `json:"reason"`
	Fix     []string `json:"fix,omitempty"`
}

// PathDecision says what a path of the host is inside the sandbox.
type PathDecision struct {
	Input    string `json:"input"`
	Inside   string `json:"inside,omitempty"`
	Writable bool   `json:"writable"`
	Error    string `json:"error,omitempty" doc:"Why there is no such path."`
}
