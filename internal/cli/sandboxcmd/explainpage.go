package sandboxcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tool"
)

// The sections of explain, in the order of the page.

func (e *env) printExplanation(s *provide.Settings, p *plan.Plan, x *explanation) {
	pg := &page{e: e, style: e.Style(), agent: p.Agent, x: x}
	pg.verdict()
	pg.who(s)
	pg.walls()
	pg.egress()
	pg.secrets()
	pg.outbound()
	pg.files(p.Spec)
	pg.environment()
	pg.tools()
	pg.browser(p)
	pg.life()
	pg.path()
	pg.closing()
}

func (pg *page) verdict() {
	box := pg.x.Sandbox
	verdict := pg.style.Good("is sandboxed")
	if !box.SessionIsSandboxed {
		verdict = pg.style.Warn("is not sandboxed")
	}
	pg.print(fmt.Sprintf("Session %s of agent %s %s: %s.",
		pg.style.Bold(console.Printable(pg.x.SessionKey)), pg.style.Bold(pg.x.AgentID), verdict, console.Printable(box.Reason)))
	if !box.SessionIsSandboxed {
		pg.print("Below is the sandbox that `atoll run` and sandboxed sessions of this agent get.")
	}
}

func (pg *page) who(s *provide.Settings) {
	box := pg.x.Sandbox
	pg.title("Who")
	file := s.Location.Path
	if file == "" {
		file = "no file; built-in defaults"
	}
	pg.fact("configuration", file, "")
	if s.Project != nil {
		pg.fact("project's file", console.ProjectText(s.Project), "")
	}
	pg.fact("mode", string(box.Mode), "sandbox.mode")
	pg.fact("scope", scopeText(box.Scope)+" (key "+box.ScopeKey+")", "sandbox.scope")
	pg.fact("container", box.ContainerName, "")
	pg.fact("config hash", box.ConfigHash[:12]+"…", "")
	if box.Backend.Effective == "" {
		pg.painted("backend", "none: "+box.Backend.Reason, "sandbox.backend", pg.style.Alarm)
	} else {
		pg.fact("backend", box.Backend.Effective+": "+box.Backend.Reason, "sandbox.backend")
	}
	pg.unavailable()
}

// unavailable names all that stands in the way of making the sandbox.
func (pg *page) unavailable() {
	for _, gap := range pg.x.Sandbox.Unavailable {
		pg.painted("unavailable", console.Printable(gap.Field+": "+gap.Reason), "", pg.style.Alarm)
		if gap.Remedy != "" {
			pg.note("to do: " + console.Printable(gap.Remedy))
		}
	}
}

func scopeText(s config.Scope) string {
	switch s {
	case config.ScopeSession:
		return "session: a sandbox for each session"
	case config.ScopeShared:
		return "shared: one sandbox for all agents"
	default:
		return "agent: one sandbox for all sessions of the agent"
	}
}

// rootText names the image, and says what the host as an image is.
func rootText(image string) string {
	if image == provide.HostImage {
		return image + ": the programs of this machine, read-only, and nothing else of it"
	}
	return image
}

// shortRoot is the beginning of what a root is made of, without its kind.
func shortRoot(id string) string {
	const enough = 12
	_, digest, _ := strings.Cut(id, ":")
	return digest[:min(len(digest), enough)] + "…"
}

func (pg *page) walls() {
	d := pg.x.Sandbox.Docker
	pg.title("Walls")
	pg.fact("image", rootText(pg.x.Sandbox.Image), "sandbox.docker.image")
	if id := pg.x.Sandbox.RootID; id != "" {
		pg.fact("fingerprint", shortRoot(id)+", part of the config hash", "")
	}
	pg.network(d.Network)
	pg.fact("user", d.User, "sandbox.docker.user")
	root := "writable"
	if d.ReadOnlyRoot {
		root = "read-only; in memory are " + listText(d.Tmpfs)
	}
	pg.fact("root", root, "sandbox.docker.readOnlyRoot")
	pg.fact("capabilities", "dropped: "+listText(d.CapDrop), "sandbox.docker.capDrop")
	seccomp := "Atoll's own"
	if d.SeccompProfile != "" {
		seccomp = d.SeccompProfile
	}
	pg.fact("system calls", seccomp+" filter, no new privileges", "sandbox.docker.seccompProfile")
	pg.limits(d)
	pg.cluster()
}

// network says what can be reached, and from where if there are two halves.
func (pg *page) network(configured string) {
	const none = "none: only loopback"
	net := pg.x.Sandbox.Networked
	switch {
	case net != nil:
		pg.fact("network", none+", in the isolated half", "")
		pg.fact("networked half", net.ContainerName+halfNetworkText(net.Network), "sandbox.docker.network")
		pg.fact("", "tools "+listText(net.Tools), "sandbox.networkAllow")
		pg.fact("", "commands "+listText(net.Commands), "sandbox.networkExecAllow")
	case configured == "none":
		pg.fact("network", none, "sandbox.docker.network")
	default:
		pg.fact("network", configured+unbounded, "sandbox.docker.network")
	}
}

// unbounded says what a network of an engine opens.
const unbounded = ": all that this machine's network reaches, no rule bounds it"

// halfNetworkText says what the networked half reaches.
func halfNetworkText(network string) string {
	if !policy.Networked(network) {
		return ": names by sandbox.egress, without a network"
	}
	return " on " + network + unbounded
}

// room says what the workspace may hold, where anybody can write to it.
func (pg *page) room(spec *sandbox.Spec) {
	if spec == nil || spec.QuotaArguments() == nil {
		return
	}
	room, set := spec.Limits.Workspace, pg.x.Sandbox.Docker.WorkspaceLimit
	from := func(key string) string {
		if _, ok := set[key]; ok {
			key = "." + key
		} else {
			key = "" // the default is of both
		}
		return "sandbox.docker.workspaceLimit" + key
	}
	if room.Size > 0 {
		pg.fact("size", fmt.Sprintf("at most %d MiB", room.Size>>20), from("size"))
	}
	if room.Files > 0 {
		pg.fact("number of files", fmt.Sprintf("at most %d", room.Files), from("files"))
	}
}

func (pg *page) files(spec *sandbox.Spec) {
	box := pg.x.Sandbox
	pg.title("Files")
	pg.fact("access", accessText(box.WorkspaceAccess), "sandbox.workspaceAccess")
	pg.room(spec)
	for _, o := range box.Overlays {
		pg.overlay(o)
	}
	for _, m := range box.Mounts {
		mode := "read and write"
		switch {
		case m.Overlay != nil:
			mode = "read and write, changes kept apart"
		case m.ReadOnly:
			mode = "read only"
		}
		pg.fact(console.Printable(m.Target), fmt.Sprintf("%s (%s, %s)", m.Source, m.Kind, mode), "")
	}
	if !box.Drift.None() {
		pg.painted("drift", driftText(box.Drift), "", pg.style.Warn)
		pg.note("`" + sandbox.RecreateCommand(spec) + "` brings the copy up to date and keeps what was changed aside")
	}
}

// overlay says how changes to one directory are kept apart, and what that costs.
func (pg *page) overlay(o provide.OverlayChoice) {
	key := "overlay " + console.Printable(o.Target)
	if o.Problem != "" {
		pg.painted(key, o.Problem, "sandbox.overlay.kind", pg.style.Warn)
		return
	}
	pg.fact(key, fmt.Sprintf("%s: %s", o.Kind, o.Why), "sandbox.overlay.kind")
	for _, cost := range o.Costs {
		pg.note(cost)
	}
}

func accessText(a config.Access) string {
	switch a {
	case config.AccessRW:
		return "rw: the agent works on the real files"
	case config.AccessOverlay:
		return "overlay: the workspace, with changes kept apart until they are approved"
	case config.AccessRO:
		return "ro: a private copy of the behaviour files, and the workspace at /agent, both read-only"
	default:
		return "none: a private copy of the behaviour files; what changes there stays there"
	}
}

func (pg *page) environment() {
	env := pg.x.Sandbox.Env
	pg.title("Environment")
	pg.fact("passed", listText(env.Passed), "")
	for _, b := range env.Blocked {
		pg.painted("blocked", b.Name+": "+b.Reason, "", pg.style.Warn)
	}
	for _, w := range env.Warnings {
		pg.painted("warning", w, "", pg.style.Warn)
	}
}

func (pg *page) tools() {
	t := pg.x.Sandbox.Tools
	pg.title("Tools")
	pg.fact("allowed", listText(pg.x.Sandbox.AvailableTools), "")
	pg.note("← " + sourceText(t.Sources.Allow))
	if missing := missingTools(t.Allow); len(missing) > 0 {
		pg.fact("", tool.NotAvailable+": "+listText(missing), "")
	}
	pg.fact("denied", listText(deniedTools(pg.x.Sandbox.AvailableTools)), "")
	pg.note("← " + sourceText(t.Sources.Deny))
	pg.tool()
}

// missingTools are the names in a list that no tool of this version has. Groups
// and patterns stand for several and are left out.
func missingTools(list []string) (missing []string) {
	for _, name := range list {
		if _, ok := tool.Find(name); !ok && !strings.ContainsAny(name, "*:") {
			missing = append(missing, name)
		}
	}
	return missing
}

// deniedTools are the tools that are not among the allowed ones.
func deniedTools(allowed []string) (denied []string) {
	for _, t := range tool.All() {
		if !slices.Contains(allowed, t.Name) {
			denied = append(denied, t.Name)
		}
	}
	return denied
}

// tool answers for the one that was asked for.
func (pg *page) tool() {
	asked := pg.x.Tool
	if asked == nil {
		return
	}
	name := console.Shortened(console.Printable(asked.Name), factIndent)
	switch {
	case asked.Allowed && asked.Half != "":
		pg.painted(name, "allowed: "+asked.Reason+", in the "+string(asked.Half)+" half", "", pg.style.Good)
		return
	case asked.Allowed:
		pg.painted(name, "allowed: "+asked.Reason, "", pg.style.Good)
		return
	case asked.Reason == tool.NotAvailable:
		pg.painted(name, asked.Reason, "", pg.style.Alarm)
		return
	}
	pg.painted(name, "denied: "+asked.Reason, "", pg.style.Alarm)
	for _, fix := range asked.Fix {
		pg.fact("", "- "+fix, "")
	}
}

func sourceText(s policy.ListSource) string {
	if s.Source == "default" {
		return "default of " + s.Key
	}
	return s.Key
}

func (pg *page) life() {
	prune := pg.x.Sandbox.Prune
	pg.title("Life")
	pg.fact("idle limit", limitText(prune.IdleHours, "hours"), "sandbox.prune.idleHours")
	pg.fact("age limit", limitText(prune.MaxAgeDays, "days"), "sandbox.prune.maxAgeDays")
	if setup := pg.x.Sandbox.Docker.SetupCommand; setup != "" {
		first, _, more := strings.Cut(setup, "\n")
		if more {
			first += " …"
		}
		pg.fact("set-up", first, "sandbox.docker.setupCommand")
	}
}

func limitText(n int, unit string) string {
	if n == 0 {
		return "off"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

// path answers for the one that was asked for.
func (pg *page) path() {
	path := pg.x.Path
	if path == nil {
		return
	}
	pg.title("Path")
	if path.Error != "" {
		pg.painted("refused", path.Error, "", pg.style.Alarm)
		return
	}
	pg.fact("on the host", path.Host, "")
	pg.fact("inside", path.Container, "")
	pg.fact("writable", map[bool]string{true: "yes", false: "no"}[path.Writable], "")
}

func (pg *page) closing() {
	if len(pg.x.Warnings)+len(pg.x.Ignored) == 0 {
		return
	}
	pg.title("Worth knowing")
	for _, w := range pg.x.Warnings {
		pg.print(console.Printable(fmt.Sprintf("  line %d: %s: %s", w.Line, w.Path, w.Message)))
	}
	for _, part := range pg.x.Ignored {
		pg.print("  " + console.Printable(part) + ": belongs to another program, not read")
	}
}
