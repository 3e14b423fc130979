package sandboxcmd

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/policy/settings"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
	"github.com/atoll-run/atoll/internal/tool"
)

type explainOptions struct {
	console.SubjectFlags
	tool, path  string
	asJSON, e2b bool
}

func newExplainCommand(e *env) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say what applies to a session, where each value came from, and what to change",
		Long: `Say what applies to a session, where each value came from, and what to change.

It asks no engine and creates nothing: what it shows is what the next command
would get.`,
		Example: `  atoll sandbox explain
  atoll sandbox explain --session agent:work:telegram:42 --tool browser
  atoll sandbox explain --path /workspace/notes.md --json
  atoll sandbox explain --e2b`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(cmd); err != nil {
				return err
			}
			return runExplain(cmd.Context(), e, o)
		},
	}
	o.Add(cmd)
	cmd.Flags().StringVar(&o.tool, "tool", "", "also say whether this tool may be used, and why")
	cmd.Flags().StringVar(&o.path, "path", "", "also say where this path is, on both sides")
	cmd.Flags().BoolVar(&o.e2b, "e2b", false, "say what applies to the sandboxes of E2B's clients")
	cmd.MarkFlagsMutuallyExclusive("e2b", "agent")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runExplain(ctx context.Context, e *env, o explainOptions) error {
	settings, err := e.Load()
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	p, err := settings.Plan(o.who(settings.Config))
	if err != nil {
		return e.ConfigError(console.WithCode(console.ExitUsage, err), o.asJSON)
	}
	if problems := console.Refusals(settings, p); len(problems) > 0 {
		return e.ConfigError(problems, o.asJSON)
	}
	backend, err := settings.Choose(ctx, p)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	x := newExplanation(ctx, settings, p, backend)
	x.Sandbox.RootID = settings.RootID(ctx, p, backend)
	x.Sandbox.Unavailable = console.OrEmpty(settings.Unavailable(ctx, p, backend))
	x.Sandbox.DefaultLimits = explainDefaults(settings, p, backend)
	if o.tool != "" {
		x.Tool = explainTool(p, o.tool)
	}
	if o.path != "" {
		x.Path = explainPath(p, o.path)
	}
	if o.asJSON {
		return e.PrintJSON(x)
	}
	e.printExplanation(settings, p, x)
	return nil
}

// who returns the subject that the flags name.
func (o *explainOptions) who(c *config.Config) provide.Subject {
	who := o.Who()
	if o.e2b {
		who.AgentID = config.APIAgent
		who.Adjust = func(agent *config.Agent) {
			_ = c.UseE2BEgress(agent) // the configuration was checked; on an error it reaches nothing
			o.Adjust(agent)
		}
	}
	return who
}

// explanation is the JSON form of explain.
type explanation struct {
	AgentID        string                `json:"agentId"`
	SessionKey     string                `json:"sessionKey"`
	MainSessionKey string                `json:"mainSessionKey"`
	Sandbox        explainedSandbox      `json:"sandbox"`
	Outbound       explainedOutbound     `json:"outbound"`
	Egress         explainedEgress       `json:"egress"`
	Secrets        []explainedSecret     `json:"secrets"`
	Tool           *explainedTool        `json:"tool,omitzero"`
	Path           *explainedPath        `json:"path,omitzero"`
	Project        *console.FoundProject `json:"project,omitzero"` // the file in the working directory, if there is one
	Ignored        []string              `json:"ignored"`
	Warnings       []console.ProblemJSON `json:"warnings"`
}

type explainedSandbox struct {
	Mode            config.Mode     `json:"mode"`
	Scope           config.Scope    `json:"scope"`
	ScopeKey        string          `json:"scopeKey"`
	Backend         provide.Backend `json:"backend"`
	WorkspaceAccess config.Access   `json:"workspaceAccess"`
	WorkspaceRoot   string          `json:"workspaceRoot"`
	// WorkspacePath is where the files are that the agent changes: on the host, or
	// inside if they are kept apart.
	WorkspacePath      string `json:"workspacePath"`
	SessionIsSandboxed bool   `json:"sessionIsSandboxed"`
	Reason             string `json:"reason"`
	ContainerName      string `json:"containerName"`
	Image              string `json:"image"`
	// RootID is the fingerprint of the host's programs, or the image's digest,
	// where no engine knows it.
	RootID string `json:"rootId,omitempty"`
	// Unavailable is what is asked for and cannot be enforced here.
	Unavailable []sandbox.Gap `json:"unavailable"`
	// DefaultLimits are the limits that are not configured.
	DefaultLimits explainedDefaults `json:"defaultLimits"`
	ConfigHash    string            `json:"configHash"`
	Mounts        []sandbox.Mount   `json:"mounts"`
	Env           explainedEnv      `json:"env"`
	Tools         policy.ToolPolicy `json:"tools"`
	// AvailableTools are the tools that there are, and that the lists allow.
	AvailableTools []string       `json:"availableTools"`
	Docker         config.Docker  `json:"docker"`
	Browser        config.Browser `json:"browser"`
	Prune          config.Prune   `json:"prune"`
	// Networked is the second sandbox of a network pair.
	Networked *networkedHalf `json:"networked,omitzero"`
	// Overlays are the directories whose changes are kept apart.
	Overlays []provide.OverlayChoice `json:"overlays,omitzero"`
	// Cluster is what the settings of the cluster add; nil unless sandboxes are pods.
	Cluster *explainedCluster `json:"kubernetes,omitzero"`
	// Drift is how the private copy differs from what it was made from.
	Drift workspace.Drift `json:"drift,omitzero"`
}

// networkedHalf is the half of a pair that has a network, and what works there.
type networkedHalf struct {
	ContainerName string   `json:"containerName"`
	Network       string   `json:"network"`
	Tools         []string `json:"tools"`
	Commands      []string `json:"commands"`
}

// explainedEnv names variables and never shows a value.
type explainedEnv struct {
	Passed   []string            `json:"passed"`
	Blocked  []policy.BlockedEnv `json:"blocked"`
	Warnings []string            `json:"warnings"`
}

type explainedTool struct {
	Name    string   `json:"name"`
	Allowed bool     `json:"allowed"`
	Reason  string   `json:"reason"`
	Fix     []string `json:"fix"`
	// Half is where the tool works, if the sandbox has two halves.
	Half policy.Half `json:"half,omitempty"`
}

type explainedPath struct {
	policy.Path
	Error string `json:"error"` // "" if there is such a path
}

func newExplanation(ctx context.Context, s *provide.Settings, p *plan.Plan, backend provide.Backend) *explanation {
	return &explanation{
		AgentID: p.Agent.ID, SessionKey: p.Session.Key, MainSessionKey: p.Session.MainKey,
		Sandbox: explainSandbox(ctx, s, p, backend), Outbound: explainOutbound(s),
		Egress: explainEgress(ctx, p), Secrets: explainSecrets(ctx, s),
		Project: console.ProjectJSON(s.Project),
		Ignored: console.OrEmpty(s.Config.Ignored()), Warnings: console.ProblemsJSON(p.Warnings),
	}
}

func explainSandbox(ctx context.Context, s *provide.Settings, p *plan.Plan, backend provide.Backend) explainedSandbox {
	box := settings.WithoutSecrets(s.Config, p.Agent)
	drift, _ := workspace.DriftOf(p.Layout) // a copy that cannot be read has no drift to show
	return explainedSandbox{
		Mode: box.Mode, Scope: box.Scope, ScopeKey: p.ScopeKey, Backend: backend,
		WorkspaceAccess: box.WorkspaceAccess, WorkspaceRoot: box.WorkspaceRoot,
		WorkspacePath:      policy.WorkspacePath(box.WorkspaceAccess, p.Spec.Workdir, p.Layout.WorkspaceDir),
		SessionIsSandboxed: p.Sandboxed, Reason: p.Why,
		ContainerName: p.Spec.Name, Image: p.Spec.Image, ConfigHash: p.Spec.ConfigHash,
		Mounts: console.OrEmpty(p.Spec.Mounts), Tools: p.Tools, AvailableTools: console.OrEmpty(tool.Allowed(p.Tools)), Docker: box.Docker, Drift: drift,
		Overlays: s.ExplainOverlays(ctx, p),
		Env: explainedEnv{
			Passed:  console.OrEmpty(slices.Sorted(maps.Keys(p.Env.Passed))),
			Blocked: console.OrEmpty(p.Env.Blocked), Warnings: console.OrEmpty(p.Env.Warnings),
		},
		Browser: box.Browser, Prune: box.Prune, Networked: explainPair(p), Cluster: explainCluster(s, p, backend),
	}
}

func explainPair(p *plan.Plan) *networkedHalf {
	if p.Net == nil {
		return nil
	}
	box := p.Agent.Sandbox
	return &networkedHalf{p.Net.Name, p.Net.Network, console.OrEmpty(box.NetworkAllow), console.OrEmpty(box.NetworkExecAllow)}
}

func explainTool(p *plan.Plan, name string) *explainedTool {
	d := tool.Decide(p.Tools, name)
	if t, ok := tool.Find(name); ok {
		d = host.Decide(t, p, tool.Caller{Policy: p.Tools})
	}
	x := &explainedTool{Name: policy.NormalizeTool(name), Allowed: d.Allowed, Reason: d.Reason, Fix: console.OrEmpty(d.Fix)}
	if p.Router.Paired() {
		x.Half = p.Router.Tool(name).Half
	}
	return x
}

func explainPath(p *plan.Plan, input string) *explainedPath {
	path, err := p.Path(input)
	if err != nil {
		return &explainedPath{Path: policy.Path{Input: input}, Error: err.Error()}
	}
	return &explainedPath{Path: path}
}
