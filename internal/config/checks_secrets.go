package config

import (
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/config/wording"
	"github.com/atoll-run/atoll/internal/egress/hostname"
)

// checkSecretHosts wants a host that the value is sent to.
func checkSecretHosts(c *checker, at *path, n *node) {
	if hosts := n.get("hosts"); hosts != nil && hosts.kind == '[' && len(hosts.items) == 0 {
		c.error(finding{at.child("hosts"), hosts.offset, "the secret is bound to no host", `name the hosts that are sent it, such as ["api.example.com"]`})
	}
}

// checkSecretSource wants exactly one place in a source of a secret.
func checkSecretSource(c *checker, at *path, n *node) {
	var ways []string
	for _, way := range []string{"env", "file", "command", "age", "keyring"} {
		if n.get(way) != nil {
			ways = append(ways, way)
		}
	}
	const hint = `write one of {env: "NAME"}, {file: "PATH"}, {command: ["PROGRAM"]}, {age: "PATH", identity: "PATH"}, {keyring: "NAME"}`
	if len(ways) != 1 {
		c.error(finding{at, n.offset, "a source is exactly one of env, file, command, age and keyring", hint})
		return
	}
	if (ways[0] == "age") != (n.get("identity") != nil) {
		c.error(finding{at, n.offset, "age and identity belong together", hint})
	}
	if command := n.get("command"); command != nil && len(command.items) == 0 {
		c.error(finding{at.child("command"), command.offset, "the program is missing", hint})
	}
}

// checkSecretUse compares every rule that names a secret with what secrets says
// of it.
func checkSecretUse(c *checker, at *path, n *node) {
	if c.variables.active { // OpenClaw's secrets are other ones
		return
	}
	agents := n.get("agents")
	check := func(at *path, parent *node) {
		allow := parent.get("egress").get("allow")
		if allow == nil {
			return
		}
		inside := map[string]string{} // names of secrets by their variable
		for i, item := range allow.items {
			c.secretOfRule(at.under("egress.allow").item(i), item, n.get("secrets"), inside)
		}
	}
	check(globalAt.child("sandbox"), agents.get("defaults").get("sandbox"))
	check(at.child("e2b"), n.get("e2b"))
	for _, a := range agentNodes(at.child("agents"), agents) {
		check(a.at.child("sandbox"), a.node.get("sandbox"))
	}
}

// secretOfRule wants a secret that exists and is bound to the hosts of the rule.
func (c *checker) secretOfRule(at *path, rule, secrets *node, inside map[string]string) {
	name := rule.get("secret")
	if name == nil || name.kind != '"' {
		return
	}
	entry := secrets.get(name.text)
	if entry == nil {
		c.error(finding{at.child("secret"), name.offset, "there is no secret " + wording.Quote(name.text), secretHint(name.text, secrets)})
		return
	}
	c.ownVariable(at, name, entry.get("env"), inside)
	host := rule.get("host")
	if host == nil || host.kind != '"' {
		return
	}
	want, err := hostname.ParsePattern(host.text)
	if err != nil || boundTo(entry.get("hosts"), want) {
		return
	}
	c.error(finding{at.child("secret"), name.offset,
		fmt.Sprintf("the secret %s is not bound to %s", wording.Quote(name.text), wording.Quote(host.text)),
		fmt.Sprintf("add %q to secrets.%s.hosts", want, name.text)})
}

// ownVariable wants every secret of one list of rules to have a variable of its own.
func (c *checker) ownVariable(at *path, name, variable *node, inside map[string]string) {
	if variable == nil || variable.text == "" {
		return
	}
	other := inside[variable.text]
	if inside[variable.text] = name.text; other != "" && other != name.text {
		c.error(finding{at.child("secret"), name.offset,
			fmt.Sprintf("the secrets %s and %s have the same variable %s inside", wording.Quote(other), wording.Quote(name.text), variable.text),
			fmt.Sprintf("give secrets.%s another env", name.text)})
	}
}

func secretHint(name string, secrets *node) string {
	var known []string
	if secrets != nil {
		for _, m := range secrets.members {
			known = append(known, m.key)
		}
	}
	if near := wording.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Sprintf("add secrets: { %s: { hosts: [\"…\"] } }", name)
}

func boundTo(hosts *node, want hostname.Pattern) bool {
	if hosts == nil {
		return false
	}
	return slices.ContainsFunc(hosts.items, func(item *node) bool {
		p, err := hostname.ParsePattern(item.text)
		return err == nil && p.Covers(want)
	})
}
