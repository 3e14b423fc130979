package cli

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/plan"
)

// page writes explain for a person: sections of facts, each with its origin.
type page struct {
	e     *env
	style style
	agent *config.Agent
}

func (e *env) printExplanation(s *app.Settings, p *plan.Plan, x *explanation) error {
	pg := &page{e: e, style: e.style(), agent: p.Agent}
	pg.verdict(s, p, x)
	pg.walls(x)
	pg.files(x)
	pg.environment(x)
	pg.tools(x)
	pg.life(x)
	pg.closing(x)
	return nil
}

func (pg *page) title(text string) { fmt.Fprintf(pg.e.Out, "\n%s\n", pg.style.bold(text)) }

// fact prints one value and, dimmed, the place where it can be changed.
func (pg *page) fact(name, value, setting string) {
	origin := ""
	if setting != "" {
		origin = pg.style.dim("  ← " + originText(originOf(pg.agent, setting)))
	}
	fmt.Fprintf(pg.e.Out, "  %-16s %s%s\n", name, printable(value), origin)
}

func (pg *page) line(text string) { fmt.Fprintln(pg.e.Out, "  "+printable(text)) }

func (pg *page) verdict(s *app.Settings, p *plan.Plan, x *explanation) {
	box := x.Sandbox
	verdict := pg.style.good("is sandboxed")
	if !box.SessionIsSandboxed {
		verdict = pg.style.warn("is not sandboxed")
	}
	fmt.Fprintf(pg.e.Out, "Session %s of agent %s %s: %s.\n", pg.style.bold(printable(x.SessionKey)), pg.style.bold(x.AgentID), verdict, box.Reason)
	if !box.SessionIsSandboxed {
		pg.line("Below is the sandbox that `atoll run` and sandboxed sessions of this agent get.")
	}
	pg.title("Who")
	file := s.Location.Path
	if file == "" {
		file = "none; built-in defaults"
	}
	pg.fact("configuration", file, "")
	pg.fact("mode", string(box.Mode), "sandbox.mode")
	pg.fact("scope", fmt.Sprintf("%s: shared by whoever has the key %s", box.Scope, box.ScopeKey), "sandbox.scope")
	pg.fact("container", box.ContainerName, "")
	pg.fact("config hash", box.ConfigHash[:12]+"…", "")
	backend := box.Backend.Effective
	if backend == "" {
		backend = pg.style.alarm("none")
	}
	pg.fact("backend", backend+" ("+box.Backend.Reason+")", "sandbox.backend")
}

func (pg *page) walls(x *explanation) {
	d := x.Sandbox.Docker
	pg.title("Walls")
	pg.fact("image", d.Image, "sandbox.docker.image")
	network := d.Network
	if network == "none" {
		network = "none: only loopback"
	}
	pg.fact("network", network, "sandbox.docker.network")
	pg.fact("user", d.User, "sandbox.docker.user")
	root := "writable"
	if d.ReadOnlyRoot {
		root = "read-only; writable are " + strings.Join(d.Tmpfs, ", ") + " (in memory) and the mounts below"
	}
	pg.fact("root", root, "sandbox.docker.readOnlyRoot")
	pg.fact("capabilities", "dropped: "+strings.Join(d.CapDrop, ", "), "sandbox.docker.capDrop")
	seccomp := "Atoll's own"
	if d.SeccompProfile != "" {
		seccomp = d.SeccompProfile
	}
	pg.fact("system calls", seccomp+" filter, no new privileges", "sandbox.docker.seccompProfile")
	pg.fact("limits", limitsText(d), "")
}

// limitsText names the limits that are set, and says so if none is.
func limitsText(d config.Docker) string {
	var set []string
	for _, limit := range []struct{ name, value string }{
		{"memory", d.Memory.Text}, {"memory+swap", d.MemorySwap.Text},
	} {
		if limit.value != "" {
			set = append(set, limit.name+" "+limit.value)
		}
	}
	if d.CPUs > 0 {
		set = append(set, fmt.Sprintf("cpus %g", d.CPUs))
	}
	if d.PidsLimit > 0 {
		set = append(set, fmt.Sprintf("processes %d", d.PidsLimit))
	}
	if len(set) == 0 {
		return "none set (sandbox.docker.memory, cpus, pidsLimit)"
	}
	return strings.Join(set, ", ")
}

func (pg *page) files(x *explanation) {
	pg.title("Files")
	pg.fact("access", accessText(x.Sandbox.WorkspaceAccess), "sandbox.workspaceAccess")
	for _, m := range x.Sandbox.Mounts {
		mode := "read and write"
		if m.ReadOnly {
			mode = "read only"
		}
		pg.fact(m.Target, fmt.Sprintf("%s (%s, %s)", m.Source, m.Kind, mode), "")
	}
}

func accessText(a config.Access) string {
	switch a {
	case config.AccessRW:
		return "rw: the agent works on the real files"
	case config.AccessRO:
		return "ro: a private copy, and the real files at /agent, both read-only"
	default:
		return "none: a private copy; what changes there stays there"
	}
}

func (pg *page) environment(x *explanation) {
	pg.title("Environment")
	pg.fact("passed", listText(x.Sandbox.Env.Passed), "")
	for _, b := range x.Sandbox.Env.Blocked {
		pg.fact("blocked", b.Name+": "+b.Reason, "")
	}
	for _, w := range x.Sandbox.Env.Warnings {
		pg.line(pg.style.warn("warning: ") + w)
	}
}

func (pg *page) tools(x *explanation) {
	t := x.Sandbox.Tools
	pg.title("Tools")
	allow := listText(t.Allow)
	if len(t.Allow) == 0 {
		allow = "everything that is not denied"
	}
	pg.fact("allowed", allow, "")
	pg.line(pg.style.dim("                 ← " + t.Sources.Allow.Key + " (" + t.Sources.Allow.Source + ")"))
	pg.fact("denied", listText(t.Deny), "")
	pg.line(pg.style.dim("                 ← " + t.Sources.Deny.Key + " (" + t.Sources.Deny.Source + ")"))
	if x.Tool != nil {
		verdict := pg.style.good("allowed")
		if !x.Tool.Allowed {
			verdict = pg.style.alarm("denied")
		}
		fmt.Fprintf(pg.e.Out, "  %s is %s: %s\n", pg.style.bold(printable(x.Tool.Name)), verdict, printable(x.Tool.Reason))
		for _, fix := range x.Tool.Fix {
			pg.line("  - " + fix)
		}
	}
}

func (pg *page) life(x *explanation) {
	pg.title("Life")
	pg.fact("idle limit", hoursText(x.Sandbox.Prune.IdleHours, "hours"), "sandbox.prune.idleHours")
	pg.fact("age limit", hoursText(x.Sandbox.Prune.MaxAgeDays, "days"), "sandbox.prune.maxAgeDays")
	if setup := x.Sandbox.Docker.SetupCommand; setup != "" {
		first, _, _ := strings.Cut(setup, "\n")
		pg.fact("set-up", first, "sandbox.docker.setupCommand")
	}
}

func hoursText(n int, unit string) string {
	if n == 0 {
		return "off"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

func (pg *page) closing(x *explanation) {
	if x.Path != nil {
		pg.title("Path")
		if x.Path.Error != "" {
			pg.line(pg.style.alarm(printable(x.Path.Error)))
		} else {
			pg.fact("on the host", x.Path.Host, "")
			pg.fact("inside", x.Path.Container, "")
			pg.fact("writable", fmt.Sprint(x.Path.Writable), "")
		}
	}
	if len(x.Warnings)+len(x.Ignored) == 0 {
		return
	}
	pg.title("Worth knowing")
	for _, w := range x.Warnings {
		pg.line(w.String())
	}
	for _, part := range x.Ignored {
		pg.line(part + ": belongs to another program, not read")
	}
}

func listText(list []string) string {
	if len(list) == 0 {
		return "(none)"
	}
	return strings.Join(list, ", ")
}
