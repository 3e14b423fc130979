package policy

import (
	"slices"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy/shell"
)

// Half is one of the two sandboxes of a network pair.
type Half string

// The halves. Without a pair there is only the isolated one.
const (
	HalfIsolated  Half = "isolated"
	HalfNetworked Half = "networked"
)

const (
	networkAllowField = "sandbox.networkAllow"
	networkExecField  = "sandbox.networkExecAllow"
)

// Router decides which half of a pair a call works in. The zero Router is that
// of a session without a pair: every call is isolated.
//
// It is routing, not a boundary: both halves see the same files.
type Router struct {
	tools    []rule
	commands []string
}

// NewRouter reads the two lists of an agent.
func NewRouter(s config.Sandbox) Router {
	blank := func(pattern string) bool { return trim(pattern) == "" }
	return Router{tools: rules(s.NetworkAllow), commands: slices.DeleteFunc(slices.Clone(s.NetworkExecAllow), blank)}
}

// Paired tells whether the session has two sandboxes.
func (r Router) Paired() bool { return len(r.tools)+len(r.commands) > 0 }

// Commands are the patterns of commands that run in the networked half.
func (r Router) Commands() []string { return r.commands }

// Route is the half that a call works in, and why.
type Route struct {
	Half   Half   `json:"half"`
	Rule   string `json:"rule,omitempty"`   // the entry that decided
	Source string `json:"source,omitempty"` // the field that holds it
	// Argv are the words of a command that matched a pattern. They are run as
	// they are: no shell may see them again.
	Argv []string `json:"-"`
}

// Tool is where a tool works, whatever its arguments are.
func (r Router) Tool(name string) Route {
	if by, ok := firstMatch(r.tools, NormalizeTool(name)); ok {
		return Route{Half: HalfNetworked, Rule: by.written, Source: networkAllowField}
	}
	return Route{Half: HalfIsolated}
}

// Command is where a shell command runs. Only one simple command of literal
// words is ever networked; all else is isolated.
func (r Router) Command(command string) Route {
	if len(r.commands) == 0 {
		return Route{Half: HalfIsolated}
	}
	argv, err := shell.Plain(command)
	if err != nil {
		return Route{Half: HalfIsolated}
	}
	return r.Argv(argv)
}

// Argv is where a command that was given as words runs.
func (r Router) Argv(argv []string) Route {
	if pattern, ok := shell.Match(r.commands, argv); ok {
		return Route{Half: HalfNetworked, Rule: pattern, Source: networkExecField, Argv: argv}
	}
	return Route{Half: HalfIsolated}
}

// PairNetwork is the network of the networked half: the configured one, or none, which
// egress serves.
func PairNetwork(configured string) string {
	if !Networked(configured) {
		return "none"
	}
	return configured
}

// Networked tells whether a sandbox with this network reaches anything.
func Networked(network string) bool {
	mode := lower(trim(network))
	return mode != "" && mode != "none"
}
