// Package plan joins configuration, policy and facts about the host into one
// sandbox.Spec and the story of how it came about. Explain prints that story;
// ensure acts on the spec; so what is explained is what happens.
//
// It reads facts about host paths but changes nothing and asks no engine.
package plan

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// Request says for whom a sandbox is planned.
type Request struct {
	Config     *config.Config
	Paths      config.Paths
	Getenv     func(string) string
	AgentID    string // "" is the session's agent, or the default one
	SessionKey string // "" is the agent's main session
	Account    string // billing account, where there is one
	Temporary  bool   // the private copy ends with the sandbox
	// Adjust changes the resolved agent before anything is decided, as flags of
	// the command line do. May be nil.
	Adjust func(*config.Agent)
	// Memory is the limit where none is configured; 0 is the machine's default.
	Memory int64
}

// Plan is everything decided about one session's sandbox.
type Plan struct {
	Agent     *config.Agent
	Session   policy.SessionKey
	Sandboxed bool
	Why       string // why it is sandboxed, or not
	ScopeKey  string
	Sharers   []*config.Agent // who uses a shared sandbox, the owner of its workspace first; nil in other scopes
	Layout    workspace.Layout
	Mounts    []policy.Mount
	Env       policy.Env
	Tools     policy.ToolPolicy
	Spec      *sandbox.Spec // complete but for Backend, which depends on this machine
	Router    policy.Router // which half of a pair a call works in
	Net       *sandbox.Spec // the networked half; nil if there is no pair
	Findings  []policy.Finding
	// SearchPath is the PATH of commands, "" for the usual one. It is known once the
	// image is.
	SearchPath string
	Home       string // HOME of commands, "" for the workdir
	Warnings   []config.Problem

	home       string
	state      string      // Atoll's state directory
	host       policy.Host // that mounts are judged by
	repository *checkout.Inside
	canonical  []string // of the mount sources, as they were judged
}

// Make plans the sandbox of a session. An error means that the request makes no
// sense; what policy refuses is in Findings, so that all of it can be shown.
func Make(r Request) (*Plan, error) {
	session, err := r.session()
	if err != nil {
		return nil, err
	}
	agent, err := r.Config.Resolve(session.AgentID)
	if err != nil {
		return nil, err
	}
	configured := agent.Workspace
	if r.Adjust != nil {
		r.Adjust(agent)
	}
	p := &Plan{Agent: agent, Session: session, Warnings: r.Config.Warnings(), home: r.Paths.Home, state: r.Paths.AtollState}
	p.Sandboxed, p.Why = policy.Sandboxed(agent.Sandbox.Mode, session)
	p.ScopeKey = policy.ScopeKey(agent.Sandbox.Scope, session, r.Account)
	p.Tools = policy.ResolveTools(agent.Tools, agentPath(agent)).Within(agent.AllTools, agentPath(agent))
	p.Router = policy.NewRouter(agent.Sandbox)
	if agent.Workspace == configured { // else the caller chose it for this use
		if err := p.share(r); err != nil {
			return nil, err
		}
	}
	for _, step := range []func(Request) error{p.layOut, p.deriveUser, p.findRepository, p.checkPolicy, p.mount, p.fillSpec} {
		if err := step(r); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Agent is the agent whose sandbox is asked for, which need not be configured.
func (r Request) Agent() (id string, err error) {
	session, err := r.session()
	return session.AgentID, err
}

// session settles which agent and which session are meant.
func (r Request) session() (policy.SessionKey, error) {
	for what, text := range map[string]string{"agent": r.AgentID, "session": r.SessionKey, "account": r.Account} {
		// Labels carry these, and come back from an engine as text.
		if !utf8.ValidString(text) {
			return policy.SessionKey{}, errhint.With(fmt.Errorf("%s %q is not valid UTF-8", what, text), "write it in UTF-8")
		}
	}
	settings := r.Config.Session()
	sessions := policy.Sessions{DefaultAgent: r.Config.DefaultAgent(), MainKey: settings.MainKey, Global: settings.Scope == "global"}
	if r.AgentID != "" {
		sessions.DefaultAgent = r.AgentID
	}
	s := sessions.Parse(r.SessionKey)
	if r.AgentID != "" && s.AgentID != policy.NormalizeAgentID(r.AgentID) {
		return s, errhint.With(fmt.Errorf("session %q belongs to agent %q, not to %q", r.SessionKey, s.AgentID, r.AgentID),
			"give only one of the two, or a session of that agent")
	}
	return s, nil
}

// agentPath is where the agent's entry is in the file, as far as any of its
// values tells: what stands there before the value's own path.
func agentPath(agent *config.Agent) string {
	for key, origin := range agent.Origins {
		if before, ok := strings.CutSuffix(origin.Path, "."+key); ok && origin.Source == "agent" {
			return before
		}
	}
	return ""
}

func (p *Plan) layOut(r Request) (err error) {
	p.Layout, err = layout(p.Agent.Sandbox, p.owner(), p.ScopeKey)
	p.Layout.Temporary = r.Temporary
	return err
}

// LayoutOf is where the host directories of an agent's sandbox are.
func LayoutOf(cfg *config.Config, agent *config.Agent, scopeKey string) (workspace.Layout, error) {
	owner := agent
	if policy.ScopeIsShared(scopeKey) {
		with, err := cfg.Sharers(agent)
		if err != nil {
			return workspace.Layout{}, err
		}
		owner = with.Agents[0]
	}
	return layout(agent.Sandbox, owner, scopeKey)
}

// layout returns the directories of a sandbox with the agent workspace of owner.
func layout(box config.Sandbox, owner *config.Agent, scopeKey string) (workspace.Layout, error) {
	return workspace.NewLayout(workspace.Params{
		Access:            box.WorkspaceAccess,
		AgentDir:          owner.Workspace,
		AgentDirIsDefault: owner.Origins["workspace"].Source == "derived",
		Root:              box.WorkspaceRoot,
		Slug:              policy.DirName(scopeKey),
		ScopeKey:          scopeKey,
	})
}

// deriveUser makes the sandbox run as the owner of its workspace if no user is
// configured, so that files on both sides belong to the same person.
func (p *Plan) deriveUser(Request) error {
	if p.Agent.Sandbox.Docker.User == "root" { // the one name that every image has, with this number
		p.Agent.Sandbox.Docker.User = "0:0"
	}
	if p.Agent.Sandbox.Docker.User != "" {
		return nil
	}
	if p.Agent.Sandbox.Backend == "kubernetes" {
		p.Agent.Sandbox.Docker.User = kubekeys.DefaultUser
		p.Agent.Origins["sandbox.docker.user"] = config.Origin{Source: "derived", Path: "the user of pods"}
		return nil
	}
	owner, err := p.Layout.User()
	if err != nil {
		return err
	}
	p.Agent.Sandbox.Docker.User = fmt.Sprintf("%d:%d", owner.UID, owner.GID)
	p.Agent.Origins["sandbox.docker.user"] = config.Origin{Source: "derived", Path: "owner of " + p.Layout.WorkspaceDir}
	return nil
}

// privateFiles are Atoll's own below its state directory: no sandbox sees them.
var privateFiles = []string{
	"atoll.db", "atoll.db-wal", "atoll.db-shm", "atoll.db.lock", "leases", "installation", "wire", "guest", "seccomp", "audit", "containers", "linux", "images", "runs",
	"agents", "atoll.json5", "attachments", "browsers", "directories.json", "directories.json.lock", "homes", "presets", "secrets", "gateway-device.key", "gateway.sock", "gateway.token", "kept", "models.json", "overlay", "relay", "reserve", "sync", "trust", "usage",
}

// PrivatePaths are the paths of Atoll itself that no sandbox may see.
func PrivatePaths(state string) (paths []string) {
	for _, name := range privateFiles {
		paths = append(paths, filepath.Join(state, name))
	}
	return paths
}

// checkPolicy collects everything that policy refuses.
func (p *Plan) checkPolicy(r Request) error {
	docker := p.Agent.Sandbox.Docker
	disk := &socketSearch{}
	host := policy.Host{Disk: disk, Homes: hostpath.Homes(r.Getenv), Roots: []string{p.Layout.WorkspaceDir, p.Layout.AgentDir},
		Private: PrivatePaths(r.Paths.AtollState)}
	p.host = host
	p.Findings = policy.Validate(docker, host)
	if p.Agent.Sandbox.WorkspaceAccess != config.AccessNone {
		p.Findings = append(p.Findings, policy.ValidateWorkspace(p.Layout.AgentDir, host)...)
	}
	if p.Agent.Sandbox.WorkspaceAccess == config.AccessOverlay {
		p.Findings = append(p.Findings, policy.ValidateTrees(p.Agent.Sandbox, p.Layout.AgentDir, host)...)
		p.Findings = append(p.Findings, p.checkRepository(host)...)
	}
	p.Warnings = slices.Concat(p.Warnings, disk.warnings())
	p.Findings = append(p.Findings, p.checkUser()...)
	p.Findings = append(p.Findings, policy.SetupObstacles(docker.SetupCommand, p.setupSandbox(), docker.User)...)
	p.Env = policy.SanitizeEnv(policy.EnvRequest{Configured: docker.Env, AllowSecret: p.Agent.Sandbox.AllowSecretEnv})
	return nil
}

// checkUser refuses a user by name where a private copy has to be given to it:
// which number the name has is known to the image alone.
func (p *Plan) checkUser() []policy.Finding {
	const field = "sandbox.docker.user"
	box := p.Agent.Sandbox
	known := slices.ContainsFunc(p.Findings, func(f policy.Finding) bool { return f.Field == field })
	if known || !p.Layout.HasCopy() || policy.NumericUser(box.Docker.User) {
		return nil
	}
	return []policy.Finding{{
		Field:   field,
		Message: fmt.Sprintf("%q is a name, so the private copy of the workspace cannot be given to that user", box.Docker.User),
		Hint:    fmt.Sprintf("Write its numbers, such as \"1000:1000\"; `docker run --rm %s id %s` shows them.", box.Docker.Image, box.Docker.User),
	}}
}

func (p *Plan) mount(Request) error {
	if p.Refusal() != nil {
		return nil // binds that were refused may not even be readable as binds
	}
	mounts, err := policy.PlanMounts(policy.MountRequest{
		Access:  p.Agent.Sandbox.WorkspaceAccess,
		Workdir: p.Agent.Sandbox.Docker.Workdir,
		Copy:    p.Layout.SandboxDir,
		Agent:   p.Layout.AgentDir,
		Binds:   p.Agent.Sandbox.Docker.Binds,
		More:    p.Agent.Sandbox.Overlay.More,
		Git:     p.gitTree(),
	})
	p.Mounts = mounts
	for _, m := range mounts {
		canonical, err := hostpath.Disk{}.Canonical(m.Source)
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
		p.canonical = append(p.canonical, canonical)
	}
	return err
}

// PathMap translates paths between the two sides of the wall.
func (p *Plan) PathMap() *policy.PathMap {
	var masks []string
	for _, t := range p.Spec.Tmpfs {
		masks = append(masks, t.Target)
	}
	return policy.NewPathMap(p.Mounts, policy.PathOptions{Workdir: p.Spec.Workdir, Home: p.home, Masks: masks})
}

// Path translates one path.
func (p *Plan) Path(input string) (policy.Path, error) { return p.PathMap().Resolve(input, "") }

// Refusal is everything that policy forbids, as one error; nil if nothing is.
func (p *Plan) Refusal() error {
	if len(p.Findings) == 0 {
		return nil
	}
	var all []error
	var hints []string
	for _, f := range p.Findings {
		all = append(all, fmt.Errorf("%s: %s", f.Field, f.Message))
		if f.Hint != "" {
			hints = append(hints, f.Hint)
		}
	}
	err := fmt.Errorf("%w: %w", sandbox.ErrDenied, errors.Join(all...))
	return errhint.With(err, strings.Join(hints, " "))
}

// setupSandbox is the sandbox that is set up, as configured: of two halves the one without
// network and egress, which is set up too.
func (p *Plan) setupSandbox() config.Sandbox {
	box := p.Agent.Sandbox
	if box.Docker.Network = p.isolatedNetwork(); p.Router.Paired() {
		box.Egress.Mode = config.EgressOff
	}
	return box
}
