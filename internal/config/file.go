package config

import "github.com/atoll-run/atoll/internal/config/kubekeys"
import "github.com/atoll-run/atoll/internal/config/poolkeys"
import "github.com/atoll-run/atoll/internal/config/vmkeys"

// The types in this file are the file as it may be written, before any merge.
// Their tags are the only description of a key: doc is its text for editors,
// enum, min, above, max, check and keys narrow its values, note names a warning
// that its use gives, accept names a list in openclawkeys.Accepted. A pointer, nil slice
// or nil map means that the key was not written.

// file is the whole file.
type file struct {
	Schema     *string                      `json:"$schema" doc:"Where an editor finds the JSON Schema of this file."`
	Version    *int                         `json:"version" min:"1" doc:"Version of the configuration that this file is written for; today 1, which is also meant by a file without one."`
	Agents     *agentsFile                  `json:"agents" doc:"Who the agents are and how their sandboxes are made."`
	Tools      *toolsFile                   `json:"tools" doc:"Which tools agents may use."`
	Session    *sessionFile                 `json:"session" doc:"How session keys are read."`
	Models     *Models                      `json:"models" doc:"Model providers."`
	LLM        *llmFile                     `json:"llm" doc:"How models are reached, what they cost and what may be spent."`
	Outbound   *outboundFile                `json:"outbound" doc:"How this host reaches servers outside."`
	Secrets    map[string]secretFile        `json:"secrets" keys:"secretName" doc:"Values that sandboxes use and never see, by name."`
	Relay      *relayFile                   `json:"relay" doc:"Where the commits of agents go, and which may."`
	Runs       *runsFile                    `json:"runs" doc:"Agents that work in sandboxes of their own, a task each."`
	Gateway    *gatewayFile                 `json:"gateway" doc:"The long-running gateway."`
	MCP        *mcpFile                     `json:"mcp" doc:"Clients of the Model Context Protocol."`
	E2B        *e2bFile                     `json:"e2b" doc:"Programs that use the SDKs of E2B."`
	VM         *vmkeys.MachinesFile         `json:"vm" doc:"Virtual machines that sandboxes run in where the system is not Linux."`
	Kubernetes *kubekeys.ClusterFile        `json:"kubernetes" doc:"The cluster that sandboxes are pods of, with sandbox.backend kubernetes."`
	Pools      map[string]poolkeys.PoolFile `json:"pools" keys:"agentID" doc:"Sandboxes that the gateway keeps ready before anybody asks for them, by agent."`
	_          struct{}                     `accept:"top"`
}

type agentsFile struct {
	Defaults  *defaultsFile        `json:"defaults" doc:"Settings of every agent that does not have its own."`
	List      []agentFile          `json:"list" doc:"The agents, as a list with ids."`
	Entries   map[string]agentFile `json:"entries" keys:"agentID" doc:"The agents, by id."`
	Ownership *string              `json:"ownership" enum:"explicit" note:"later" doc:"OpenClaw's mark that no agent is the default one."`
}

type defaultsFile struct {
	Workspace     *string       `json:"workspace" check:"hostPath" doc:"Directory of the agent's files on the host; ~ is the home directory, a relative path starts at the directory of this file."`
	SkipBootstrap *bool         `json:"skipBootstrap" doc:"Do not make the behaviour files in a new workspace."`
	Model         *ModelChoice  `json:"model" doc:"The model: provider/name, or a primary one and its fallbacks."`
	Skills        []string      `json:"skills" check:"line" doc:"Names of the skills that may be used; all if not given."`
	Sandbox       *sandboxFile  `json:"sandbox" doc:"The sandbox of every agent."`
	LLM           *agentLLMFile `json:"llm" doc:"What every agent may ask of models."`
	Session       *mainFile     `json:"session" doc:"The main session, where session itself does not name it."`
	_             struct{}      `accept:"agents.defaults"`
}

type agentFile struct {
	ID        *string         `json:"id" check:"listedID" doc:"The agent's id (only in agents.list)."`
	Default   *bool           `json:"default" doc:"This agent answers session keys that name none."`
	Workspace *string         `json:"workspace" check:"hostPath" doc:"Directory of this agent's files on the host."`
	Model     *ModelChoice    `json:"model" doc:"The model of this agent."`
	Skills    []string        `json:"skills" check:"line" doc:"Names of the skills that this agent may use; all if not given."`
	Sandbox   *sandboxFile    `json:"sandbox" doc:"The sandbox of this agent."`
	LLM       *agentLLMFile   `json:"llm" doc:"What this agent may ask of models."`
	Tools     *agentToolsFile `json:"tools" doc:"Which tools this agent may use."`
	_         struct{}        `accept:"agents.entries"`
}

type toolsFile struct {
	Host      *bool             `json:"host" doc:"A session that is not sandboxed may use exec and file tools on the host."`
	Allow     []string          `json:"allow" check:"line" doc:"Only these tools, in every session, sandboxed or not."`
	AlsoAllow []string          `json:"alsoAllow" check:"line" note:"later" doc:"Tools added to the default list."`
	Deny      []string          `json:"deny" check:"line" doc:"Tools that no session may use."`
	Sandbox   *sandboxToolsFile `json:"sandbox" doc:"Which tools a sandboxed session may use."`
	Web       *Web              `json:"web" doc:"How the tools for the web work."`
	_         struct{}          `accept:"tools"`
}

type agentToolsFile struct {
	Host      *bool             `json:"host" doc:"An unsandboxed session of this agent may use exec and file tools on the host."`
	Allow     []string          `json:"allow" check:"line" doc:"Only these tools, in every session of this agent."`
	AlsoAllow []string          `json:"alsoAllow" check:"line" note:"later" doc:"Tools added to the default list."`
	Deny      []string          `json:"deny" check:"line" doc:"Tools that no session of this agent may use."`
	Sandbox   *sandboxToolsFile `json:"sandbox" doc:"Which tools a sandboxed session of this agent may use."`
	_         struct{}          `accept:"agents.entries.tools"`
}

type sandboxToolsFile struct {
	Tools *toolListFile `json:"tools" doc:"Tool names, group:names and patterns with *."`
}

type toolListFile struct {
	Allow     []string `json:"allow" check:"line" doc:"Only these tools; an empty list allows every tool that is not denied."`
	AlsoAllow []string `json:"alsoAllow" check:"line" doc:"These tools besides the default ones."`
	Deny      []string `json:"deny" check:"line" doc:"Never these tools, whatever is allowed."`
}

type mainFile struct {
	MainKey *string `json:"mainKey" check:"line" doc:"Name of the main session."`
}

type sessionFile struct {
	MainKey *string  `json:"mainKey" check:"line" doc:"Name of the main session."`
	Scope   *string  `json:"scope" enum:"per-sender|global" doc:"With global, all senders share one main session."`
	_       struct{} `accept:"session"`
}
