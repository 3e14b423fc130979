package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
)

const (
	hintProject = "Bind a directory of the project instead."
	hintRoots   = "Put the directory below the workspace, or set sandbox.docker.dangerouslyAllowExternalBindSources."
	hintTarget  = "Choose another target, or set sandbox.docker.dangerouslyAllowReservedContainerTargets."
	hintService = "Stop the program that waits on the socket, or have it make the socket elsewhere."
	hintSocket  = "Remove the bind: a socket of the engine gives away the host. Use `atoll` itself to make sandboxes."
)

// checkBinds judges every bind: its form, its source, its target, its options.
func checkBinds(docker config.Docker, host Host) (found findings) {
	if len(docker.Binds) == 0 {
		return nil
	}
	sources := newSourceCheck(docker, host)
	for i, spec := range docker.Binds {
		field := fmt.Sprintf("binds[%d]", i)
		bind, ok := SplitBind(spec)
		if !ok {
			found.add(field, "Write host-path:container-path[:ro].", "bind %q has no target", spec)
			continue
		}
		for _, problem := range sources.judge(bind.Source) {
			found.add(field, problem.hint, "bind %q: source %s", spec, problem.text)
		}
		for _, problem := range judgeTarget(bind.Target, docker) {
			found.add(field, problem.hint, "bind %q: target %s", spec, problem.text)
		}
		for _, text := range judgeOptions(bind) {
			found.add(field, "Use ro, rw, z or Z.", "bind %q: %s", spec, text)
		}
	}
	return found
}

// problem is what is wrong with one path.
type problem struct {
	text, hint    string
	workspaceHint string // for a workspace, if it is another one
}

// sourceCheck judges the host side of binds.
type sourceCheck struct {
	blocked *blocklist
	roots   []string // empty: anywhere
	disk    Disk
	sockets func(dir string) []string // of the host, below a directory
}

func newSourceCheck(docker config.Docker, host Host) sourceCheck {
	paths := append(append(slices.Clone(blockedPaths), credentialPaths(host.Homes)...), host.Private...)
	check := sourceCheck{blocked: newBlocklist(paths, host.Disk), disk: host.Disk, sockets: func(dir string) []string {
		found, _ := host.Disk.SocketsBelow(dir)
		return found
	}}
	if docker.AllowExternalSources {
		return check
	}
	for _, root := range host.Roots {
		check.roots = append(check.roots, NormalizePath(root))
		if canonical, err := host.Disk.Canonical(NormalizePath(root)); err == nil && !slices.Contains(check.roots, canonical) {
			check.roots = append(check.roots, canonical)
		}
	}
	return check
}

// judge looks at a source first as text, then at where it leads. No override
// reaches the list of blocked paths.
func (c sourceCheck) judge(source string) []problem {
	if !strings.HasPrefix(source, "/") {
		return []problem{{text: fmt.Sprintf("%q is not an absolute path", source), hint: "Write the path from /. Named volumes are not accepted here."}}
	}
	if hasControl(source) {
		return []problem{{text: fmt.Sprintf("%q contains a control character", source), hint: hintProject}}
	}
	p := NormalizePath(source)
	canonical, err := c.disk.Canonical(p)
	if err != nil {
		return []problem{{text: fmt.Sprintf("%q cannot be examined: %v", p, err), hint: hintProject}}
	}
	if found, ok := c.blockedBy(p, canonical); ok {
		return []problem{found}
	}
	for _, way := range slices.Compact([]string{p, canonical}) {
		if !c.inRoots(way) {
			return []problem{{text: fmt.Sprintf("%q is outside of the allowed roots %q", way, c.roots), hint: hintRoots}}
		}
	}
	if found := c.sockets(canonical); len(found) > 0 {
		text := fmt.Sprintf("%q gives access to the socket %q of a program of the host", p, found[0])
		return []problem{{text: text, hint: hintService, workspaceHint: hintService}}
	}
	return nil
}

func (c sourceCheck) blockedBy(p, canonical string) (problem, bool) {
	for _, way := range slices.Compact([]string{p, canonical}) {
		if socket, ok := engineSocket(way, c.disk); ok {
			return problem{text: fmt.Sprintf("%q gives access to the socket %q", way, socket), hint: hintSocket}, true
		}
		if found, ok := c.blocked.find(way); ok {
			return problem{text: fmt.Sprintf("%q %s blocked path %q", way, found.how, found.blocked), hint: hintProject}, true
		}
	}
	if found, ok := c.blocked.findSame(canonical); ok {
		text := fmt.Sprintf("%q is another name of what %s blocked path %q", canonical, found.how, found.blocked)
		return problem{text: text, hint: hintProject}, true
	}
	return problem{}, false
}

func (c sourceCheck) inRoots(p string) bool {
	return len(c.roots) == 0 || slices.ContainsFunc(c.roots, func(root string) bool { return within(p, root) })
}

// judgeTarget looks at the container side of a bind.
func judgeTarget(target string, docker config.Docker) []problem {
	p := NormalizePath(target)
	switch {
	case !strings.HasPrefix(target, "/"):
		return []problem{{text: fmt.Sprintf("%q is not an absolute path", target), hint: "Write the path from /."}}
	case hasControl(target):
		return []problem{{text: fmt.Sprintf("%q contains a control character", target), hint: "Choose another target."}}
	case p == "/" || within(p, "/proc") || within(p, "/sys"):
		return []problem{{text: fmt.Sprintf("%q belongs to the system of the sandbox", p), hint: "Choose another target."}}
	case within(p, InternalTarget):
		return []problem{{text: fmt.Sprintf("%q is reserved for Atoll; no override opens it", p), hint: "Choose another target."}}
	}
	if docker.AllowReservedTargets {
		return nil
	}
	for _, reserved := range reservedTargets(docker) {
		if within(p, reserved) {
			return []problem{{text: fmt.Sprintf("%q is reserved (%s)", p, reserved), hint: hintTarget}}
		}
	}
	return nil
}

// reservedTargets are the places inside that belong to workspaces.
func reservedTargets(docker config.Docker) []string {
	reserved := []string{"/workspace", AgentTarget}
	if workdir := NormalizePath(docker.Workdir); strings.HasPrefix(workdir, "/") && workdir != "/" {
		reserved = append(reserved, workdir)
	}
	return reserved
}

func judgeOptions(bind Bind) (problems []string) {
	seen := map[string]bool{}
	for _, option := range bind.options() {
		if !slices.Contains(bindOptions, option) {
			problems = append(problems, fmt.Sprintf("option %q is not accepted", option))
		}
		seen[option] = true
	}
	if seen["ro"] && seen["rw"] {
		problems = append(problems, "options ro and rw contradict each other")
	}
	if seen["z"] && seen["Z"] {
		problems = append(problems, "options z and Z contradict each other")
	}
	return problems
}
