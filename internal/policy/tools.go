package policy

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
)

const (
	globalToolsPath = "tools.sandbox.tools"
	anyAgentPath    = "agents.entries.*"

	viewImageTool = "view_image" // what agents need to look at pictures
	imageTool     = "image"      // its older name, still found in deny lists

	sourceAgent   = "agent"
	sourceGlobal  = "global"
	sourceDefault = "default"

	reasonDeny  = "deny list"
	reasonAllow = "allow list"
)

// ListSource tells where a tool list came from.
type ListSource struct {
	Source string `json:"source"` // "agent", "global" or "default"
	Key    string `json:"key"`    // the field to change
}

// ToolSources tells where the two lists came from.
type ToolSources struct {
	Allow ListSource `json:"allow"`
	Deny  ListSource `json:"deny"`
}

// ToolPolicy says which tools a sandboxed session may use.
type ToolPolicy struct {
	Allow   []string    `json:"allow"` // expanded; empty allows everything that is not denied
	Deny    []string    `json:"deny"`  // expanded; wins over Allow
	Sources ToolSources `json:"sources"`

	allow, deny []rule
	also        string // the field by which to allow more
	stages      []toolStage
}

// Decision is the answer for one tool.
type Decision struct {
	Allowed bool     `json:"allowed"`
	Reason  string   `json:"reason"`
	Fix     []string `json:"fix,omitempty"`
	Rule    string   `json:"rule,omitempty"`   // the entry that decided
	Source  string   `json:"source,omitempty"` // the field that holds it
}

// ResolveTools makes the policy of an agent from its lists. agentPath is where
// the agent's entry is in the file ("agents.list[0]"); "" if that is not known.
func ResolveTools(lists config.ToolLists, agentPath string) ToolPolicy {
	if agentPath == "" {
		agentPath = anyAgentPath
	}
	levels := toolLevels{lists: lists, agentPath: agentPath + "." + globalToolsPath}
	allow, allowSource, explicit := levels.allow()
	deny, denySource := levels.deny(explicit)
	allow, deny = withImages(allow, deny)
	return ToolPolicy{
		Allow: patterns(allow), Deny: patterns(deny), allow: allow, deny: deny,
		Sources: ToolSources{Allow: allowSource, Deny: denySource},
		also:    levels.alsoField(),
	}
}

// toolLevels picks lists from the agent's entry, else from the global one.
type toolLevels struct {
	lists     config.ToolLists
	agentPath string
}

func (t toolLevels) pick(list func(config.ToolList) []string, field string) ([]string, ListSource) {
	if names := list(t.lists.Agent); names != nil {
		return names, ListSource{sourceAgent, t.agentPath + "." + field}
	}
	global := ListSource{sourceGlobal, globalToolsPath + "." + field}
	if names := list(t.lists.Global); names != nil {
		return names, global
	}
	return nil, ListSource{sourceDefault, global.Key}
}

// allow returns the allow list, and its entries that were configured by name.
func (t toolLevels) allow() (list []rule, source ListSource, explicit []rule) {
	names, source := t.pick(func(l config.ToolList) []string { return l.Allow }, "allow")
	more, moreSource := t.pick(func(l config.ToolList) []string { return l.AlsoAllow }, "alsoAllow")
	explicit = rules(append(append([]string{}, names...), more...))
	switch {
	case names == nil && len(more) > 0:
		return rules(append(append([]string{}, defaultAllow...), more...)), moreSource, explicit
	case names == nil:
		return rules(defaultAllow), source, nil
	case len(rules(names)) == 0:
		return nil, source, explicit // an empty list allows all; more cannot narrow it
	}
	return explicit, source, explicit
}

// deny returns the deny list. The built-in one gives way to what was asked for
// by name; a configured one never does.
func (t toolLevels) deny(explicit []rule) ([]rule, ListSource) {
	names, source := t.pick(func(l config.ToolList) []string { return l.Deny }, "deny")
	if names != nil {
		return rules(names), source
	}
	var kept []string
	for _, name := range defaultDeny {
		if _, asked := firstMatch(explicit, name); !asked {
			kept = append(kept, name)
		}
	}
	return rules(kept), source
}

// alsoField is the field that adds to the allow list without replacing it.
func (t toolLevels) alsoField() string {
	if t.lists.Agent.Allow != nil || t.lists.Agent.AlsoAllow != nil {
		return t.agentPath + ".alsoAllow"
	}
	return globalToolsPath + ".alsoAllow"
}

// withImages lets every allow list see pictures, unless they are denied under
// their present or their older name.
func withImages(allow, deny []rule) ([]rule, []rule) {
	_, denied := firstMatch(deny, viewImageTool)
	if older, ok := firstMatch(deny, imageTool); ok && !denied {
		return allow, append(deny, rule{viewImageTool, older.written})
	}
	_, allowed := firstMatch(allow, viewImageTool)
	if len(allow) > 0 && !allowed && !denied {
		allow = append(allow, rule{viewImageTool, viewImageTool})
	}
	return allow, deny
}

// Decide answers whether a tool may be used.
func (p ToolPolicy) Decide(tool string) Decision {
	name := NormalizeTool(tool)
	if name == "" {
		return Decision{Reason: "no tool was named"}
	}
	denying, denied := firstMatch(p.deny, name)
	allowing, listed := firstMatch(p.allow, name)
	listed = listed || len(p.allow) == 0
	switch {
	case denied:
		return p.refusal(name, denying, listed)
	case !listed:
		return Decision{Reason: reasonAllow, Fix: []string{p.fixAllow(name)}, Source: p.Sources.Allow.Key}
	case len(p.allow) == 0:
		return p.pass(name, Decision{Allowed: true, Reason: "the allow list is empty and the deny list does not hold it", Source: p.Sources.Allow.Key})
	}
	return p.pass(name, Decision{Allowed: true, Reason: reasonAllow, Rule: allowing.written, Source: p.Sources.Allow.Key})
}

// refusal is the decision for a denied tool.
func (p ToolPolicy) refusal(name string, by rule, listed bool) Decision {
	d := Decision{Reason: reasonDeny, Fix: []string{p.fixDeny(name, by)}, Rule: by.written, Source: p.Sources.Deny.Key}
	if !listed {
		d.Reason += " + " + reasonAllow
		if fix := p.fixAllow(name); fix != d.Fix[0] {
			d.Fix = append(d.Fix, fix)
		}
	}
	return d
}

func (p ToolPolicy) fixDeny(name string, by rule) string {
	switch {
	case p.Sources.Deny.Source == sourceDefault:
		return fmt.Sprintf("Add %q to %s.", name, p.also)
	case by.written == name:
		return fmt.Sprintf("Remove %q from %s.", name, p.Sources.Deny.Key)
	}
	return fmt.Sprintf("Remove %q, which matches %q, from %s.", by.written, name, p.Sources.Deny.Key)
}

func (p ToolPolicy) fixAllow(name string) string {
	if p.Sources.Allow.Source == sourceDefault || strings.HasSuffix(p.Sources.Allow.Key, ".alsoAllow") {
		return fmt.Sprintf("Add %q to %s.", name, p.also)
	}
	return fmt.Sprintf("Add %q to %s (or set it to [] to allow all).", name, p.Sources.Allow.Key)
}
