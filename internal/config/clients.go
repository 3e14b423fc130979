package config

import (
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/config/poolkeys"
	"github.com/atoll-run/atoll/internal/config/vmkeys"
)

// mcpFile is mcp as it may be written.
type mcpFile struct {
	AllowDestroy *bool    `json:"allowDestroy" doc:"An MCP client may remove its sandbox without asking the person."`
	OnExit       *string  `json:"onExit" enum:"stop|keep" doc:"What becomes of the sandbox when its MCP client ends: stop it if nobody else uses it, or keep it running."`
	_            struct{} `accept:"mcp"`
}

// MCP reports whether clients of the Model Context Protocol may remove their sandbox without
// asking a person, and whether it runs on when they end.
func (c *Config) MCP() (allowDestroy, keepRunning bool) {
	f, narrowed := orEmpty(c.file.MCP), c.limits != nil && orEmpty(c.limits.file.MCP).AllowDestroy != nil // only false counts
	return f.AllowDestroy != nil && *f.AllowDestroy && !narrowed, f.OnExit != nil && *f.OnExit == "keep"
}

// e2bFile is e2b as it may be written.
type e2bFile struct {
	Templates map[string]string `json:"templates" keys:"word" check:"line" doc:"Images of the templates that E2B's clients name, by name; base is the image of agent api if it is not here."`
	Egress    *egressFile       `json:"egress" doc:"Which names outside the sandboxes of E2B's clients reach, in place of sandbox.egress of agent api."`
}

// E2BTemplates returns the images of the templates that E2B's clients name.
func (c *Config) E2BTemplates() map[string]string { return orEmpty(c.file.E2B).Templates }

// VM returns vm.* as written.
func (c *Config) VM() *vmkeys.MachinesFile { return orEmpty(c.file.VM) }

// Kubernetes returns kubernetes.* as written.
func (c *Config) Kubernetes() *kubekeys.ClusterFile { return orEmpty(c.file.Kubernetes) }

// Pools returns pools.* as written.
func (c *Config) Pools() map[string]poolkeys.PoolFile { return c.file.Pools }

// checkPools checks the sum of the sizes of all pools, and that their agents exist.
func checkPools(c *checker, at *path, n *node) {
	pools, known := n.get("pools"), []string{APIAgent}
	if pools == nil {
		return
	}
	for _, a := range agentNodes(at.child("agents"), n.get("agents")) {
		known = append(known, a.id)
	}
	if len(known) == 1 {
		known = append(known, MainAgent)
	}
	for _, m := range pools.members {
		if !slices.Contains(known, m.key) {
			c.error(finding{at.child("pools").child(m.key), m.offset, "there is no such agent", "the agents are " + strings.Join(known, ", ")})
		}
	}
	if message, hint := poolkeys.Problem(pools.json()); message != "" {
		c.error(finding{at.child("pools"), pools.offset, message, hint})
	}
}

// UseE2BEgress gives an agent what the sandboxes of E2B's clients reach, in place of its own
// egress: nothing, unless e2b.egress says so. On an error it reaches nothing.
func (c *Config) UseE2BEgress(a *Agent) error {
	const at = "e2b.egress."
	m := &merge{cfg: c, origins: map[string]Origin{}}
	e, err := m.egress(at, orEmpty(orEmpty(c.file.E2B).Egress), &egressFile{})
	if err != nil {
		e = builtinEgress()
	}
	e.ModelHosts = a.Sandbox.Egress.ModelHosts
	a.Sandbox.Egress = e
	for key, origin := range m.origins {
		a.Origins[egressKey+strings.TrimPrefix(key, at)] = origin
	}
	c.limits.agent(a)
	return err
}
